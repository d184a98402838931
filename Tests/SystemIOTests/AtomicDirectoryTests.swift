import Glibc
import SystemIO
import TestSupport
import Testing

/// Directories that become visible only when they are complete.
struct AtomicDirectoryTests {
  private let temporary: TemporaryDirectory
  private static let abandoned: ByteString = ".sandboxctl-directory-0123456789abcdef.tmp"

  init() throws { temporary = try TemporaryDirectory() }

  private func write(_ name: ByteString, in output: AtomicDirectory) throws {
    try output.directory.create(name, permissions: 0o600).write([1])
  }

  private func names(in directory: ByteString) throws -> [ByteString] {
    try Directory.open(path: temporary.path(directory)).names()
  }

  @Test func itAppearsWhenItIsComplete() throws {
    let output = try AtomicDirectory(path: temporary.path("above/x"))
    try write("last", in: output)
    try write("a", in: output)
    let above = try temporary.directory.directory("above")
    #expect(try above.statusIfPresent("x") == nil)
    try output.commit(last: "last")
    let made = try above.directory("x")
    #expect(try made.names() == ["a", "last"])
    #expect(try made.status().permissions == 0o700)
    #expect(try above.names() == ["x"])
  }

  /// This includes directories without write permission for their owner.
  @Test(arguments: [true, false]) func withoutCommitNothingStays(isThere: Bool) throws {
    if isThere { try temporary.directory.createDirectory("x") }
    do {
      let output = try AtomicDirectory(path: temporary.path("x"))
      let inner = try output.directory.makeDirectory("inner")
      try inner.create("a", permissions: 0o600).write([1])
      try inner.setPermissions(0o500)
    }
    #expect(try temporary.directory.names() == (isThere ? ["x"] : []))
    if isThere { #expect(try names(in: "x") == []) }
  }

  /// An existing empty directory, which may be a mount point, receives the entries.
  @Test func anEmptyDirectoryIsFilled() throws {
    try temporary.directory.createDirectory("x")
    let identity = try temporary.directory.status("x").identity
    let output = try AtomicDirectory(path: temporary.path("x"))
    try write("a", in: output)
    _ = try output.directory.makeDirectory("b")
    try write("last", in: output)
    try output.commit(last: "last")
    let made = try temporary.directory.directory("x")
    #expect(try made.names() == ["a", "b", "last"] && made.status().identity == identity)
  }

  @Test func otherDirectoriesAreNotReplaced() throws {
    try temporary.write("old", at: "full/f")
    for name in ["full", "full/f", "link"] as [ByteString] {
      if name == "link" { try temporary.directory.createLink(name, to: "nowhere") }
      let error = failure { _ = try AtomicDirectory(path: temporary.path(name)) }
      #expect(error?.isExisting == (name == "full"), "\(name)")
    }
    try temporary.directory.createDirectory("empty")
    for name in ["empty", "new"] as [ByteString] {
      let output = try AtomicDirectory(path: temporary.path(name))
      for entry in ["a", "b", "last"] as [ByteString] { try write(entry, in: output) }
      try temporary.write("other", at: name.appending("b"))
      #expect(failure { try output.commit(last: "last") }?.isExisting == true, "\(name)")
    }
    #expect(try temporary.read("empty/b") == Array("other".utf8))
    #expect(try temporary.read("new/b") == Array("other".utf8))
    #expect(try names(in: "new") == ["b"])
    #expect(try names(in: "empty") == ["b"])
  }

  /// A directory counts as abandoned only if no process has locked it; nothing else is touched.
  @Test(arguments: [true, false]) func abandonedDirectoriesAreRemoved(isWithin: Bool) throws {
    let other: ByteString = ".sandboxctl-directory-0123.tmp"
    let file: ByteString = ".sandboxctl-directory-00000000000000aa.tmp"
    let place: ByteString = isWithin ? "x" : ""
    try temporary.write("data", at: place.appending(Self.abandoned).appending("deep/f"))
    if !isWithin {
      try temporary.write("data", at: other.appending("f"))
      try temporary.write("data", at: file)
    }
    let first = try AtomicDirectory(path: temporary.path(isWithin ? "x" : "first"))
    try write("last", in: first)
    if isWithin {
      let error = failure { _ = try AtomicDirectory(path: temporary.path("x")) }
      #expect(error?.isExisting == true)
    } else {
      let second = try AtomicDirectory(path: temporary.path("second"))
      try write("last", in: second)
      try second.commit(last: "last")
    }
    try first.commit(last: "last")
    let names = try temporary.directory.names()
    #expect(names == (isWithin ? ["x"] : [other, file, "first", "second"].sorted()))
    if isWithin { #expect(try self.names(in: "x") == ["last"]) }
  }

  /// The owner of the directory above can replace the new one, into which root would write.
  @Test(.enabled(if: Host.userID == 0)) func aDirectoryOfAnotherUserInItsPlaceIsNotUsed() throws {
    var refusals = 0
    for call in 1...8 {
      let above = try TemporaryDirectory()
      let path = above.path
      try above.directory.createDirectory("of-user", permissions: 0o700)
      try above.directory.setOwner(user: 1234, group: 1234, of: "of-user")
      let plan = Faults.Plan(before: [.open], at: call) {
        guard let parent = try? Directory.open(path: path),
          let name = try? parent.names().first(where: { $0 != "of-user" })
        else { return }
        try? parent.exchange("of-user", with: name, in: parent)
      }
      do throws(SystemError) {
        let output = try Faults.inject(plan) { () throws(SystemError) in
          try AtomicDirectory(path: above.path("x"))
        }
        #expect(try output.directory.status().user == 0, "call \(call)")
      } catch {
        #expect(error.number == ESTALE, "call \(call): \(error)")
        refusals += 1
      }
    }
    #expect(refusals > 0)
  }
}

import Glibc
import SystemIO
import TestSupport
import Testing

struct AtomicFileTests {
  let temporary: TemporaryDirectory
  init() throws { temporary = try TemporaryDirectory("atomic") }

  @Test func theFileAppearsCompleteAtCommit() throws {
    var file = try AtomicFile(in: temporary.directory, permissions: 0o600)
    let named = try temporary.directory.statusIfPresent("f")
    #expect(named == nil)
    try write(Array("half, ".utf8), &file)
    try write(Array("whole".utf8), &file)
    #expect(try temporary.directory.statusIfPresent("f") == nil)
    try file.commit(as: "f")
    #expect(try temporary.read("f") == Array("half, whole".utf8))
    #expect(try temporary.directory.status("f").permissions == 0o600)
    #expect(try temporary.directory.names() == ["f"])
  }

  private func write(_ bytes: [UInt8], _ file: inout AtomicFile) throws {
    try file.write(bytes)
    let names = try temporary.directory.names()
    #expect(names.count == 1 && names[0].utf8?.hasPrefix(".sandboxctl-") == true)
  }

  @Test func withoutCommitNoFileStays() throws {
    do {
      let file = try AtomicFile(in: temporary.directory)
      try file.write([1])
      #expect(try temporary.directory.names().count == 1)
    }
    #expect(try temporary.directory.names() == [])
  }

  @Test func twoConcurrentFilesAreIndependent() throws {
    let first = try AtomicFile(in: temporary.directory)
    let second = try AtomicFile(in: temporary.directory)
    try first.write([1])
    try second.write([2])
    try first.commit(as: "f")
    try second.commit(as: "f")
    #expect(try temporary.read("f") == [2])
    #expect(try temporary.directory.names() == ["f"])
  }

  /// A cache can be rebuilt, so its files are not synced.
  @Test func withoutDurabilityNothingIsSynced() throws {
    let plan = Faults.Plan(failing: [.sync], at: 1, number: 5, failsRepeatedly: true)
    try Faults.inject(plan) {
      let file = try AtomicFile(in: temporary.directory)
      try file.write([1, 2])
      try file.commit(as: "f", durably: false)
    }
    #expect(plan.count == 0)
    #expect(try temporary.read("f") == [1, 2])
  }

  @Test func temporaryNamesAreRecognized() throws {
    let file = try AtomicFile(in: temporary.directory)
    try file.write([1])
    let names = try temporary.directory.names()
    #expect(names.allSatisfy { AtomicFile.isTemporary($0) } && names.count == 1)
    for name in ["f", ".sandboxctl-1", "x.tmp", ByteString([0xff])] as [ByteString] {
      #expect(!AtomicFile.isTemporary(name))
    }
  }

  /// A file counts as abandoned only if no process has locked it; no other file is touched.
  @Test func abandonedFilesAreRemoved() throws {
    let abandoned: ByteString = ".sandboxctl-output-0123456789abcdef.tmp"
    let others: [ByteString] = [
      "f", ".sandboxctl-0123456789abcdef.tmp", ".sandboxctl-output-0123456789abcdef",
      ".sandboxctl-output-012345678.tmp", ".sandboxctl-output-0123456789abcdeg.tmp",
    ]
    for name in others + [abandoned] { try temporary.write("data", at: name) }
    let link: ByteString = ".sandboxctl-output-00000000000000aa.tmp"
    try temporary.directory.createLink(link, to: "f")
    let pair: ByteString = ".sandboxctl-output-00000000000000bb.tmp"
    try temporary.directory.createHardLink(pair, to: "f", in: temporary.directory)
    let fifo: ByteString = ".sandboxctl-output-00000000000000cc.tmp"
    #expect(mkfifo(temporary.path(fifo).description, 0o600) == 0)
    let stay = (others + [link, pair, fifo]).sorted()
    do {
      let file = try AtomicFile(lockedIn: temporary.directory)
      try file.write([1])
      AtomicFile.removeAbandoned(in: temporary.directory)
      #expect(try temporary.directory.names().count == stay.count + 1)
      #expect(try temporary.directory.statusIfPresent(abandoned) == nil)
      try file.commit(as: "done")
    }
    #expect(try temporary.read("done") == [1])
    #expect(try temporary.directory.names() == (stay + ["done"]).sorted())
    AtomicFile.removeAbandoned(in: temporary.directory)
    #expect(try temporary.directory.names() == (stay + ["done"]).sorted())
  }

  /// On a volume without locks, no file is treated as abandoned, but files can still be written.
  @Test func withoutLocksNothingIsRemoved() throws {
    let name: ByteString = ".sandboxctl-output-0123456789abcdef.tmp"
    try temporary.write("data", at: name)
    let plan = Faults.Plan(failing: [.lock], at: 1, number: ENOLCK, failsRepeatedly: true)
    try Faults.inject(plan) {
      AtomicFile.removeAbandoned(in: temporary.directory)
      try AtomicFile(lockedIn: temporary.directory).commit(as: "f")
    }
    #expect(plan.count > 1)
    #expect(try temporary.directory.names() == [name, "f"])
  }

  @Test func replacesUnlessForbidden() throws {
    try temporary.write("old", at: "f")
    let error = failure {
      try AtomicFile.write([1], as: "f", in: temporary.directory, replacing: false)
    }
    #expect(error?.isExisting == true)
    #expect(try temporary.read("f") == Array("old".utf8))
    #expect(try temporary.directory.names() == ["f"])
    try AtomicFile.write([1], as: "f", in: temporary.directory)
    #expect(try temporary.read("f") == [1])
    try AtomicFile.write([2], as: "new", in: temporary.directory, replacing: false)
    #expect(try temporary.read("new") == [2])
  }

  @Test func anExistingLinkIsReplacedAndNotFollowed() throws {
    try temporary.write("other", at: "target")
    try temporary.directory.createLink("f", to: "target")
    try AtomicFile.write([1], as: "f", in: temporary.directory)
    #expect(try temporary.read("target") == Array("other".utf8))
    #expect(try temporary.directory.status("f").kind == .file)
  }

  /// Every call fails in turn: the target has the old or the new content, is never incomplete, and
  /// no temporary file is left behind.
  @Test(arguments: [true, false])
  func aFailedCallNeverLeavesAnIncompleteFile(isThere: Bool) throws {
    let (old, new) = (Array("old".utf8), [UInt8](repeating: 9, count: 100_000))
    var firsts = 0
    for number in [EIO, ENOSPC, EINTR] {
      for first in 1...100 {
        let directory = try temporary.directory.makeDirectory(ByteString("\(number)-\(first)"))
        if isThere { try AtomicFile.write(old, as: "f", in: directory) }
        let plan = Faults.Plan(at: first, number: number)
        let error = Faults.inject(plan) {
          failure { try AtomicFile.write(new, as: "f", in: directory) }
        }
        let names = try directory.names()
        let content = try directory.statusIfPresent("f").flatMap { _ in
          try directory.file("f").readAll(limit: 1 << 20)
        }
        #expect(names == [] || names == ["f"], "call \(first) failing")
        #expect(content == new || content == (isThere ? old : nil), "call \(first) failing")
        if !plan.hasFired {
          #expect(error == nil && content == new)
          firsts = first
          break
        }
        #expect(error?.number == number)
      }
    }
    // The calls: open the directory, create, write, sync, rename, sync the directory.
    #expect(firsts > 6)
  }

  @Test func lastingFailuresNeverLeaveAnIncompleteFile() throws {
    try temporary.write("old", at: "f")
    let new = [UInt8](repeating: 9, count: 1000)
    for first in 1...100 {
      let plan = Faults.Plan(at: first, number: EIO, failsRepeatedly: true)
      let error = Faults.inject(plan) {
        failure { try AtomicFile.write(new, as: "f", in: temporary.directory) }
      }
      let content = try temporary.read("f")
      #expect(content == new || content == Array("old".utf8), "from call \(first) on")
      if !plan.hasFired { break }
      #expect(error != nil)
    }
    #expect(try temporary.read("f") == new)
  }
}

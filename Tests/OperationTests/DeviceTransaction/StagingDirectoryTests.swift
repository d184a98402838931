import Dispatch
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import DeviceTransaction

/// Staging directories of several runs in one directory.
struct StagingDirectoryTests {
  private let temporary: TemporaryDirectory

  init() throws { temporary = try TemporaryDirectory() }

  private static let lost: ByteString = ".sandboxctl-restore-0011223344556677"

  /// Each run removes what others abandoned, but nothing of one that begins or ends meanwhile.
  @Test func runsInOneDirectoryDoNotDisturbEachOther() throws {
    let path = temporary.path
    let failures = Mutex<[String]>([])
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      do {
        let parent = try Directory.open(path: path)
        for _ in 0..<300 {
          let staging = try StagingDirectory.make(in: parent)
          try staging.tree.create("staged", permissions: 0o600).close()
          try staging.remove()
        }
      } catch { failures.withLock { $0.append("\(error)") } }
    }
    #expect(failures.withLock { $0 } == [])
    #expect(try temporary.directory.names().isEmpty)
  }

  @Test(arguments: [[], ["lock"], ["lock", "tree/staged"]] as [[ByteString]])
  func anAbandonedDirectoryIsRemoved(files: [ByteString]) throws {
    try temporary.directory.createDirectory(Self.lost, permissions: 0o700)
    for file in files { try temporary.write([], at: Self.lost.appending(file)) }
    let staging = try StagingDirectory.make(in: temporary.directory)
    #expect(try temporary.directory.names().count == 1)
    try staging.remove()
    #expect(try temporary.directory.names().isEmpty)
  }

  @Test func readOnlyDirectoriesInItAreRemovedByTheirOwner() throws {
    for file: ByteString in ["lock", "tree/closed/staged"] {
      try temporary.write([], at: Self.lost.appending(file))
    }
    let closed = temporary.path(Self.lost.appending("tree/closed"))
    try Directory.open(path: closed).setPermissions(0o555)
    _ = try Program.run("chown", ["-R", "nobody", temporary.string])
    try Unprivileged.run(keepingGroup: true) {
      try StagingDirectory.removeAbandoned(in: temporary.directory)
    }
    #expect(try temporary.directory.names().isEmpty)
  }

  @Test func theDirectoryOfALivingRunStays() throws {
    let living = try StagingDirectory.make(in: temporary.directory)
    try living.tree.create("staged", permissions: 0o600).close()
    try StagingDirectory.removeAbandoned(in: temporary.directory)
    #expect(try living.tree.names() == ["staged"])
    try living.remove()
  }

  /// The program creates nothing before the lock, so that it cannot tell what this is.
  @Test func aDirectoryWithoutALockStaysUnlessEmpty() throws {
    try temporary.write("text", at: Self.lost.appending("tree/file"))
    try StagingDirectory.removeAbandoned(in: temporary.directory)
    #expect(try temporary.read(Self.lost.appending("tree/file")) == Array("text".utf8))
  }
}

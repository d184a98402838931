import Dispatch
import Glibc
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

  /// Each run removes staging directories that others abandoned, but not those of a run that begins
  /// or ends in the meantime.
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

  @Test func theDirectoryOfARunInProgressStays() throws {
    let living = try StagingDirectory.make(in: temporary.directory)
    try living.tree.create("staged", permissions: 0o600).close()
    try StagingDirectory.removeAbandoned(in: temporary.directory)
    #expect(try living.tree.names() == ["staged"])
    try living.remove()
  }

  /// The program creates the lock first, so it cannot know who made a directory without one.
  @Test func aDirectoryWithoutALockStaysUnlessEmpty() throws {
    try temporary.write("text", at: Self.lost.appending("tree/file"))
    try StagingDirectory.removeAbandoned(in: temporary.directory)
    #expect(try temporary.read(Self.lost.appending("tree/file")) == Array("text".utf8))
  }

  /// The user of a device can exchange names in its directories while root works there.
  @Test func anotherDirectoryInItsPlaceIsNotRemoved() throws {
    let staging = try StagingDirectory.make(in: temporary.directory)
    try temporary.directory.rename(staging.name, to: "moved", in: temporary.directory)
    try temporary.write("root's", at: staging.name.appending("file"))
    do {
      try staging.remove()
      Issue.record("it was removed")
    } catch { #expect(error.isStale, "\(error)") }
    #expect(try temporary.read(staging.name.appending("file")) == Array("root's".utf8))
  }

  /// Another directory appears between the creation of the directory and its first use, or later.
  @Test func anotherDirectoryInItsPlaceIsNotUsed() throws {
    let path = temporary.path
    var (call, refused) = (0, 0)
    while call < 100 {
      call += 1
      try temporary.write("root's", at: "other/file")
      let plan = Faults.Plan(before: [.open, .create, .list], at: call) {
        guard let parent = try? Directory.open(path: path),
          let name = try? parent.names().first(where: { StagingDirectory.isAny($0) })
        else { return }
        try? parent.rename(name, to: "moved", in: parent)
        try? parent.rename("other", to: name, in: parent)
      }
      do {
        try Faults.inject(plan) {
          let staging = try StagingDirectory.make(in: temporary.directory)
          try staging.remove()
        }
      } catch { refused += 1 }
      let names = try temporary.directory.names()
      let kept = names.first { (try? temporary.read($0.appending("file"))) != nil }
      #expect(kept != nil, "call \(call): \(names)")
      for name in names { try temporary.directory.removeTree(name) }
      if !plan.hasFired { break }
    }
    #expect(call < 100 && refused > 2, "\(call), \(refused)")
  }

  /// File systems without owners, or with owners set by a mount option, refuse to set the group.
  @Test(arguments: [EPERM, EACCES, EOPNOTSUPP, ENOSYS])
  func aRefusedGroupIsNotAnError(number: Int32) throws {
    let plan = Faults.Plan(failing: [.setOwner], at: 1, number: number)
    try Faults.inject(plan) {
      let staging = try StagingDirectory.make(in: temporary.directory)
      #expect(try temporary.directory.status(staging.name).permissions == 0o700)
      try staging.remove()
    }
    #expect(plan.hasFired)
    #expect(try temporary.directory.names().isEmpty)
  }

  /// No other user may read staged files, so a mode that cannot be set is an error; so is an I/O
  /// error.
  @Test(arguments: [(SystemError.Operation.setMode, EPERM), (.setOwner, EIO)])
  func aDirectoryThatCannotBeClosedIsAnError(
    operation: SystemError.Operation, number: Int32
  ) throws {
    let plan = Faults.Plan(failing: [operation], at: 1, number: number)
    #expect(throws: SystemError.self) {
      try Faults.inject(plan) { _ = try StagingDirectory.make(in: temporary.directory) }
    }
    #expect(try temporary.directory.names().isEmpty)
  }

  /// NFS and FUSE keep a removed file in its directory while it is open, so the lock is closed
  /// first.
  @Test func aLockThatIsHiddenWhileItIsOpenIsClosed() throws {
    var removals = 0
    for isHidden in [false, true] {
      // The last removal is that of the staging directory.
      let plan = Faults.Plan(
        failing: [.remove], at: isHidden ? removals : .max, number: ENOTEMPTY)
      try Faults.inject(plan) {
        let staging = try StagingDirectory.make(in: temporary.directory)
        try staging.tree.create("staged", permissions: 0o600).close()
        try staging.remove()
      }
      #expect(plan.hasFired == isHidden)
      removals = plan.count
      #expect(try temporary.directory.names().isEmpty)
    }
    #expect(removals > 3)
  }

  /// Exchanges a new staging directory with `of-user` before it is locked. Returns the error.
  private func errorOfExchange() -> SystemError? {
    let path = temporary.path
    let plan = Faults.Plan(before: [.lock], at: 1) {
      guard let parent = try? Directory.open(path: path),
        let name = try? parent.names().first(where: { StagingDirectory.isAny($0) })
      else { return }
      try? parent.exchange("of-user", with: name, in: parent)
    }
    let error = #expect(throws: SystemError.self) {
      try Faults.inject(plan) { _ = try StagingDirectory.make(in: temporary.directory) }
    }
    #expect(plan.hasFired)
    return error
  }

  /// The user of a device on which root restores replaces the directory once it is created.
  @Test(.enabled(if: Host.userID == 0)) func aDirectoryOfAnotherUserInItsPlaceIsRefused() throws {
    try temporary.directory.createDirectory("of-user", permissions: 0o700)
    try temporary.directory.setOwner(user: 1234, group: 1234, of: "of-user")
    let error = errorOfExchange()
    #expect(error?.number == ESTALE, "\(error as Any)")
  }

  /// Not even another directory of root that the user moved there is used.
  @Test func aDirectoryWithATreeInItsPlaceIsRefused() throws {
    try temporary.write("other", at: "of-user/tree/staged")
    let error = errorOfExchange()
    #expect(error?.number == ESTALE, "\(error as Any)")
  }
}

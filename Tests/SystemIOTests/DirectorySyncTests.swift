import Glibc
import TestSupport
import Testing

@testable import SystemIO

/// The calls that make names in directories durable.
struct DirectorySyncTests {
  /// EINVAL and ENOTSUP are the errors of file systems that cannot sync directories.
  @Test(arguments: [Int32(22), 95]) func aFileSystemThatCannotSyncDirectoriesIsNotAnError(
    _ number: Int32
  ) throws {
    let temporary = try TemporaryDirectory("sync")
    let directory = try Directory.open(path: temporary.path)
    try Faults.inject(Faults.Plan(failing: [.sync], at: 1, number: number)) { try directory.sync() }
    #expect(UnsyncedDirectories.first != nil)
    // For the content of a file, they are errors.
    let file = try directory.create("file")
    let error = #expect(throws: SystemError.self) {
      try Faults.inject(Faults.Plan(failing: [.sync], at: 1, number: number)) { try file.sync() }
    }
    #expect(error?.number == number)
  }

  /// The errors that some FUSE file systems return for syncfs(2).
  @Test(arguments: [EINVAL, ENOTSUP, ENOSYS]) func aVolumeThatCannotBeSyncedIsNotAnError(
    _ number: Int32
  ) throws {
    let temporary = try TemporaryDirectory("sync")
    let directory = try Directory.open(path: temporary.path)
    let plan = Faults.Plan(failing: [.sync], at: 1, number: number)
    try Faults.inject(plan) { try directory.syncVolume() }
    #expect(plan.hasFired && UnsyncedDirectories.first != nil)
    let lost = #expect(throws: SystemError.self) {
      try Faults.inject(Faults.Plan(failing: [.sync], at: 1, number: EIO)) {
        try directory.syncVolume()
      }
    }
    #expect(lost?.number == EIO)
  }

  @Test func otherErrorsOfADirectorySyncAreThrown() throws {
    let temporary = try TemporaryDirectory("sync")
    let error = #expect(throws: SystemError.self) {
      try Faults.inject(Faults.Plan(failing: [.sync], at: 1, number: 5)) {
        try temporary.directory.sync()
      }
    }
    #expect(error?.number == 5)
  }

  /// The name of each new directory is synced in its parent before it is relied on.
  @Test(arguments: [false, true]) func theParentsOfNewDirectoriesAreSynced(isResolved: Bool) throws
  {
    let temporary = try TemporaryDirectory("sync")
    let path = temporary.path("one/two/three")
    let counting = Faults.Plan(failing: [.sync], at: .max, number: 5)
    try Faults.inject(counting) {
      _ = try isResolved ? Directory.make(resolved: path) : Directory.make(path: path)
    }
    #expect(counting.count == 3)
    try Faults.inject(counting) {
      _ = try isResolved ? Directory.make(resolved: path) : Directory.make(path: path)
    }
    #expect(counting.count == 3)
  }
}

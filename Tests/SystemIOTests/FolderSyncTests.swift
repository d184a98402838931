import TestSupport
import Testing

@testable import SystemIO

/// What makes the names of folders durable.
@Suite struct FolderSyncTests {
  /// Errors of file systems that cannot sync folders: EINVAL and ENOTSUP.
  @Test(arguments: [Int32(22), 95]) func aFileSystemThatCannotSyncFoldersIsNoError(
    _ number: Int32
  ) throws {
    let temporary = try TemporaryFolder("sync")
    let folder = try Folder.open(path: temporary.path)
    try Faults.inject(Faults.Plan(failing: [.sync], at: 1, number: number)) { try folder.sync() }
    #expect(UnsyncedFolders.first != nil)
    // A file's content is another matter.
    let file = try folder.create("file")
    let error = #expect(throws: SystemError.self) {
      try Faults.inject(Faults.Plan(failing: [.sync], at: 1, number: number)) { try file.sync() }
    }
    #expect(error?.number == number)
  }

  @Test func otherErrorsOfAFolderAreErrors() throws {
    let temporary = try TemporaryFolder("sync")
    let error = #expect(throws: SystemError.self) {
      try Faults.inject(Faults.Plan(failing: [.sync], at: 1, number: 5)) {
        try temporary.folder.sync()
      }
    }
    #expect(error?.number == 5)
  }

  /// Each folder that is made is named in its parent on the disk before anything relies on it.
  @Test(arguments: [false, true]) func theParentsOfNewFoldersAreSynced(isResolved: Bool) throws {
    let temporary = try TemporaryFolder("sync")
    let path = temporary.path("one/two/three")
    let counting = Faults.Plan(failing: [.sync], at: .max, number: 5)
    try Faults.inject(counting) {
      _ = try isResolved ? Folder.make(resolved: path) : Folder.make(path: path)
    }
    #expect(counting.count == 3)
    try Faults.inject(counting) {
      _ = try isResolved ? Folder.make(resolved: path) : Folder.make(path: path)
    }
    #expect(counting.count == 3)
  }
}

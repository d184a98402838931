import ArchiveStore
import Backup
import Restore
import Synchronization
import SystemIO
import TestSupport
import Testing

/// The modes of existing directories while entries are put into them, and afterwards.
@Suite(.spreadScans) struct MergedModeTests {
  private let fixture: Fixture

  init() throws { fixture = try Fixture(inMemory: true) }

  private func setMode(_ mode: UInt16, of path: ByteString) throws {
    try Directory.open(path: fixture.directory.path(path)).setPermissions(mode)
  }

  private func mode(_ path: ByteString) throws -> UInt16 {
    try Directory.open(path: fixture.directory.path(path)).status().permissions
  }

  // MARK: - Directories that their owner may not write to

  private func chownToNobody() throws {
    guard Host.userID == 0 else { return }
    let changed = try Program.run("chown", ["-R", "nobody", fixture.directory.string])
    try #require(changed.code == 0, "\(changed.errors)")
  }

  /// Makes a snapshot of read-only directories, and an older state of them.
  private func backUpReadOnly() throws -> BackupReport {
    for top: ByteString in ["tree", "into"] {
      try fixture.directory.write("same", at: top.appending("ro/old"))
    }
    try fixture.directory.write("text", at: "tree/ro/new")
    try fixture.directory.write("text", at: "tree/ro/sub/in it")
    try fixture.directory.write("text", at: "tree/beside")
    for path: ByteString in ["tree/ro/sub", "tree/ro", "tree", "into/ro", "into"] {
      try setMode(0o555, of: path)
    }
    try chownToNobody()
    let report = try fixture.backup()
    // The repository, which root has just changed.
    try chownToNobody()
    return report
  }

  /// Also if the metadata of the existing directories is kept.
  @Test(arguments: [OverwriteMode.always, .ifChanged, .never])
  func readOnlyDirectoriesOfTheUserGetEntries(_ overwrite: OverwriteMode) throws {
    let snapshot = try backUpReadOnly()
    let report = try Unprivileged.run(keepingGroup: true) {
      try fixture.merge(snapshot, into: "into", overwrite)
    }
    #expect(report.isComplete, "\(report.failed)")
    let records = try fixture.records("into")
    for path: ByteString in ["ro/new", "ro/sub/in it", "beside", "ro/old"] {
      #expect(records[path] != nil, "\(path)")
    }
    for path: ByteString in ["into", "into/ro", "into/ro/sub"] {
      #expect(try mode(path) == 0o555, "\(path)")
    }
  }

  /// From each rename on, all of them fail because the volume is full.
  @Test func aFailedRestoreLeavesNoDirectoryWritable() throws {
    let snapshot = try backUpReadOnly()
    for call in 1...3 {
      let plan = try fixture.plan(snapshot, into: "into", .always)
      let reader = try fixture.repository.beginReading()
      let faults = Faults.Plan(failing: [.rename], at: call, number: 28, failsRepeatedly: true)
      try Unprivileged.run(keepingGroup: true) {
        Faults.inject(faults) { _ = try? RestoreOperation(plan, from: reader, threads: 1).run() }
      }
      #expect(faults.hasFired)
      for path: ByteString in ["into", "into/ro"] {
        #expect(try mode(path) == 0o555, "call \(call): \(path)")
      }
      #expect(
        try !fixture.names("into").contains { $0.bytes.starts(with: Array(".sandboxctl".utf8)) })
    }
    #expect(try fixture.text("into/beside") == "text")
  }

  // MARK: - Directories that others may not read

  private static let folders: [ByteString] = ["a", "b", "c"]

  /// Makes a snapshot of directories that only their owner can read.
  private func backUpClosed() throws -> BackupReport {
    for folder in Self.folders {
      try fixture.directory.write("text", at: ByteString("tree").appending(folder).appending("new"))
      try setMode(0o700, of: ByteString("tree").appending(folder))
    }
    return try fixture.backup()
  }

  private func makeOlder() throws {
    if try fixture.directory.directory.statusIfPresent("into") != nil {
      try fixture.directory.directory.removeTree("into")
    }
    for folder in Self.folders {
      try fixture.directory.write("mine", at: ByteString("into").appending(folder).appending("old"))
      try setMode(0o755, of: ByteString("into").appending(folder))
    }
  }

  /// Checks that each directory has its previous mode or, if it has a restored entry, the stored
  /// one. Returns the number of the latter.
  private func expectModes(_ what: String) throws -> Int {
    var filled = 0
    for folder in Self.folders {
      let path = ByteString("into").appending(folder)
      let isFilled = try fixture.records("into")[folder.appending("new")] != nil
      if isFilled { filled += 1 }
      #expect(try mode(path) == (isFilled ? 0o700 : 0o755), "\(what): \(path)")
    }
    return filled
  }

  /// From each rename on, all of them fail because the volume is full.
  @Test func aFailedRestoreReturnsTheModes() throws {
    let snapshot = try backUpClosed()
    var (call, found) = (0, Set<Int>())
    while call < 100 {
      call += 1
      try makeOlder()
      let plan = try fixture.plan(snapshot, into: "into", .always)
      let reader = try fixture.repository.beginReading()
      let faults = Faults.Plan(failing: [.rename], at: call, number: 28, failsRepeatedly: true)
      let isDone = Faults.inject(faults) {
        (try? RestoreOperation(plan, from: reader, threads: 1).run()) != nil
      }
      found.insert(try expectModes("call \(call)"))
      if isDone { break }
    }
    #expect(call < 100 && found == [0, 1, 2, 3], "\(call): \(found)")
  }

  /// Stopped at each moment at which it asks.
  @Test func anInterruptedRestoreReturnsTheModes() throws {
    let snapshot = try backUpClosed()
    var found = Set<Int>()
    for stop in 1..<1000 {
      try makeOlder()
      let asked = Atomic<Int>(0)
      let operation = RestoreOperation(
        try fixture.plan(snapshot, into: "into", .always),
        from: try fixture.repository.beginReading(), threads: 1,
        isStopping: { asked.add(1, ordering: .relaxed).newValue >= stop })
      let isDone = (try? operation.run()) != nil
      found.insert(try expectModes("stop \(stop)"))
      if isDone { return #expect(found == [0, 1, 2, 3]) }
    }
    Issue.record("it does not end: \(found)")
  }
}

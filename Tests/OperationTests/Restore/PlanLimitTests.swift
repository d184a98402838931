import ArchiveStore
import Backup
import Codecs
import DeviceTransaction
import SystemIO
import TestSupport
import Testing

@testable import Restore

/// Snapshots with more paths than fit into memory are refused before they use it.
@Suite(.spreadScans) struct PlanLimitTests {
  private let fixture: Fixture
  private let reader: RepositoryReader
  private let small: StoredSnapshot
  private let endless: StoredSnapshot

  init() throws {
    fixture = try Fixture(inMemory: true)
    let session = try fixture.repository.beginWriting()
    var tree = try session.storeTree([])
    for _ in 0..<60 {
      tree = try session.storeTree(
        ["a", "b"].map { TreeEntry(name: $0, node: .directory(tree)) })
    }
    try fixture.directory.write("text", at: "tree/folder/file")
    let report = try fixture.backup()
    small = try #require(report.snapshot)
    var snapshot = small.snapshot
    snapshot.tree = tree
    snapshot.sequence += 1
    endless = try session.finish(snapshot)
    reader = try fixture.repository.beginReading()
  }

  private func entry(_ number: Int) throws -> (PlannedTree, TreeReference) {
    var planned = PlannedTree()
    let directory = TreeEntry(name: "x", node: .directory(endless.snapshot.tree))
    for _ in 0..<number {
      _ = planned.append(directory, named: "x", parent: nil, action: .create)
    }
    return (planned, endless.snapshot.tree)
  }

  private func path() throws -> RestoreTarget {
    try RestoreTarget.find(
      fixture.directory.path("back"), source: .directory(endless.snapshot.tree, nil),
      overwrite: nil,
      protecting: [])
  }

  /// 2^61 - 2 paths from 61 trees, each of which is read once.
  @Test func pathsAreCountedWithoutVisitingEach() throws {
    #expect(try reader.countPaths(below: endless.snapshot.tree) == (1 << 61) - 2)
    #expect(try reader.countPaths(below: small.snapshot.tree) == 4)
  }

  @Test func aPlanThatIsTooLargeIsRefusedEarly() throws {
    var bound = PlanLimit(try path(), whole: endless.snapshot.tree, first: 4)
    try bound.check(entry(3).0, creating: 3, from: reader)
    let error = #expect(throws: OperationError.self) {
      try bound.check(entry(4).0, creating: 4, from: reader)
    }
    let text = "\(try #require(error))"
    #expect(text.contains("\((1 << 61) - 2) files and directories are needed"), "\(text)")
    #expect(error?.hint?.contains("SNAP:PATH") == true)
  }

  /// If the target is not empty, or only a part is restored, the number of entries to create is
  /// limited.
  @Test func aMergeCountsItsNewEntries() throws {
    var bound = PlanLimit(try path(), whole: nil, first: 4)
    try bound.check(entry(4).0, creating: 4, from: reader)
    try bound.check(entry(7).0, creating: .max, from: reader)
    #expect(throws: OperationError.self) {
      try bound.check(entry(8).0, creating: .max, from: reader)
    }
  }

  /// If more damage, under longer names, is found than fits into memory, a part of it is listed,
  /// and all of it is counted.
  @Test func damageIsNamedUpToALimit() throws {
    let session = try fixture.repository.beginWriting()
    let lost = Blake2b.hash(Array("never stored".utf8))
    let content = Content(size: 5, level: 0, pieces: [.blob(lost, length: 5)])
    let entries = (100..<200).flatMap { number in
      [
        TreeEntry(name: ByteString("\(number) file"), node: .file(content)),
        TreeEntry(name: ByteString("\(number) directory"), node: .directory(TreeReference(lost))),
      ]
    }
    var snapshot = small.snapshot
    snapshot.tree = try session.storeTree(entries)
    snapshot.sequence += 2
    let stored = try session.finish(snapshot)
    var request = RestoreRequest(path: "", target: fixture.directory.path("part"))
    let reader = try fixture.repository.beginReading()
    request.remarkRoom = 1000
    let plan = try RestorePlan.make(stored, request, from: reader)
    let named = plan.damaged.count - 1
    #expect((5..<50).contains(named), "\(named)")
    #expect(plan.damaged[0].path == "100 directory")
    #expect(plan.damaged[named].remark.hasPrefix("\(100 - named) more are not listed"))
    let report = try RestoreOperation(plan, from: reader, threads: 1).run()
    #expect(!report.isComplete && report.damaged.count < 3 * named + 4)
    #expect(report.damaged[named + 1].path == "100 file", "\(report.damaged)")
    #expect(report.damaged.last?.remark.contains("more are not listed") == true)
    #expect(report.restored.files == 0 && report.restored.directories == 100)
  }

  /// The planner checks its own limit.
  @Test func aRestoreChecksTheLimit() throws {
    var request = RestoreRequest(path: "", target: fixture.directory.path("back"))
    request.firstLimit = 1000
    let error = #expect(throws: OperationError.self) {
      try RestorePlan.make(endless, request, from: reader)
    }
    #expect("\(try #require(error))".contains(" more fit"))
    #expect(try fixture.names("").contains("back") == false)
    let plan = try RestorePlan.make(
      small, path: "folders/tree", to: fixture.directory.path("back"), from: reader)
    #expect(plan.creates.entries == 2)
  }
}

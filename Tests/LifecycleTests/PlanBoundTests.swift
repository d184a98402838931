import ArchiveStore
import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Lifecycle

/// Snapshots with more paths than there is room for: they are refused before they take memory.
@Suite struct PlanBoundTests {
  private let rig: Rig
  private let reader: RepositoryReader
  private let small: StoredSnapshot
  private let endless: StoredSnapshot

  init() throws {
    rig = try Rig(inMemory: true)
    let session = try rig.repository.beginWriting()
    var tree = try session.storeTree([])
    for _ in 0..<60 {
      tree = try session.storeTree(
        ["a", "b"].map { TreeEntry(name: $0, node: .directory(tree)) })
    }
    try rig.folder.write("text", at: "tree/folder/file")
    let report = try rig.backup()
    small = try #require(report.snapshot)
    var snapshot = small.snapshot
    snapshot.tree = tree
    snapshot.sequence += 1
    endless = try session.finish(snapshot)
    reader = try rig.repository.beginReading()
  }

  private func entry(_ number: Int) throws -> (PlannedTree, TreeReference) {
    var planned = PlannedTree()
    let folder = TreeEntry(name: "x", node: .directory(endless.snapshot.tree))
    for _ in 0..<number {
      _ = planned.append(folder, named: "x", parent: nil, action: .create)
    }
    return (planned, endless.snapshot.tree)
  }

  private func place() throws -> RestorePlace {
    try RestorePlace.find(
      rig.folder.path("back"), source: .folder(endless.snapshot.tree, nil), overwrite: nil)
  }

  /// 2^61 - 2 paths of 61 trees, each of which is read once.
  @Test func pathsAreCountedWithoutBeingGoneThrough() throws {
    #expect(try reader.countPaths(below: endless.snapshot.tree) == (1 << 61) - 2)
    #expect(try reader.countPaths(below: small.snapshot.tree) == 4)
  }

  @Test func whatDoesNotFitIsRefusedAtTheFirstLook() throws {
    var bound = PlanBound(try place(), whole: endless.snapshot.tree, first: 4)
    try bound.check(entry(3).0, creating: 3, from: reader)
    let error = #expect(throws: LifecycleError.self) {
      try bound.check(entry(4).0, creating: 4, from: reader)
    }
    let text = "\(try #require(error))"
    #expect(text.contains("\((1 << 61) - 2) files and folders are to be made"), "\(text)")
    #expect(error?.hint?.contains("SNAP:PATH") == true)
  }

  /// Where something is there already, or not all comes back, what is to be made counts.
  @Test func whatIsMergedCountsAsItGrows() throws {
    var bound = PlanBound(try place(), whole: nil, first: 4)
    try bound.check(entry(4).0, creating: 4, from: reader)
    try bound.check(entry(7).0, creating: .max, from: reader)
    #expect(throws: LifecycleError.self) {
      try bound.check(entry(8).0, creating: .max, from: reader)
    }
  }

  /// As the planner asks it, with the bound that it has.
  @Test func aRestoreAsksIt() throws {
    var request = RestoreRequest(path: "", target: rig.folder.path("back"))
    request.firstBound = 1000
    let error = #expect(throws: LifecycleError.self) {
      try RestorePlan.make(endless, request, from: reader)
    }
    #expect("\(try #require(error))".contains("there is room for"))
    #expect(try rig.names("").contains("back") == false)
    let plan = try RestorePlan.make(
      small, path: "folders/tree", to: rig.folder.path("back"), from: reader)
    #expect(plan.creates.entries == 2)
  }
}

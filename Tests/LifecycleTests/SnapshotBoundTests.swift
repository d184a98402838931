import ArchiveStore
import SystemIO
import TestSupport
import Testing

@testable import Lifecycle

/// What a plan says of the room for the snapshot that comes first: never less than the snapshot's own check
/// counts, and the same where nothing is stored yet.
@Suite(.spreadScans) struct SnapshotBoundTests {
  private static let package = MemoryPackage(files: ["Example": "new program"])

  /// What a backup's own check counted: the files that it has to read, and their bytes.
  private func saved(_ rig: UpdateFixture) throws -> (files: Int, bytes: UInt64) {
    let request = rig.request
    var source = Self.package
    let plan = try rig.plan(.update, Self.package) { $0.allowsDowngrade = true }
    _ = try AppChangeOperation(plan, saving: request, to: rig.rig.repository).run(&source)
    let progress = request.counters.progress
    return (progress.filesToDo, progress.bytesToDo)
  }

  @Test func itIsWhatAFirstSnapshotStores() throws {
    let rig = try UpdateFixture()
    try rig.write(String(repeating: "film ", count: 10_000), "Documents/film")
    let documents = try Directory.open(path: rig.dataDirectory().appending("Documents"))
    try documents.createHardLink("twin", to: "film", in: documents)
    let first = try #require(try rig.plan(.update, Self.package).snapshotBound)
    let counted = try saved(rig)
    #expect(first.files == counted.files && first.bytes == counted.bytes, "\(first), \(counted)")
    #expect(first.bytes > 50_000 && first.bytes < 100_000, "a file with two names counts once")
    // Nobody asks the repository: what it has by now counts all the same.
    let second = try #require(try rig.plan(.update, Self.package).snapshotBound)
    let again = try saved(rig)
    #expect(second.bytes >= again.bytes && again.bytes < 50_000, "\(second), \(again)")
    #expect(second.bytes > 50_000)
  }

  @Test func holesTakeNoRoom() throws {
    let rig = try UpdateFixture()
    let before = try #require(try rig.plan(.update, Self.package).snapshotBound)
    let documents = try Directory.open(path: rig.dataDirectory().appending("Documents"))
    try documents.create("sparse").truncate(to: 1 << 30)
    let after = try #require(try rig.plan(.update, Self.package).snapshotBound)
    #expect(after.files == before.files + 1 && after.bytes == before.bytes)
  }

  @Test func whereNoneIsMadeNothingIsSaid() throws {
    let rig = try UpdateFixture()
    #expect(try rig.plan(.update, Self.package) { $0.savesFirst = false }.snapshotBound == nil)
    #expect(try rig.plan(.offload, nil).snapshotBound != nil)
    let empty = try UpdateFixture(isInstalled: false)
    #expect(try empty.plan(.install, Self.package).snapshotBound == nil)
  }
}

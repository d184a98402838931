import AppUpdate
import ArchiveStore
import Backup
import DeviceScan
import DeviceTransaction
import SystemIO
import TestSupport
import Testing

/// The plan's estimate of the space for the snapshot before the change: never less than the
/// backup's own check computes, and equal if nothing is stored yet.
@Suite(.spreadScans) struct SnapshotLimitTests {
  private static let package = MemoryPackage(files: ["Example": "new program"])

  /// The result of the backup's own check: the number of files to read, and their bytes.
  private func saved(_ fixture: UpdateFixture) throws -> (files: Int, bytes: UInt64) {
    let request = fixture.request
    var source = Self.package
    let plan = try fixture.plan(.update, Self.package) { $0.allowsDowngrade = true }
    _ = try AppChangeOperation(
      plan, saving: SafetySnapshotMaker(request, in: fixture.base.repository)
    ).run(&source)
    let progress = request.counters.progress
    return (progress.filesToDo, progress.bytesToDo)
  }

  @Test func theEstimateMatchesAFirstSnapshot() throws {
    let fixture = try UpdateFixture()
    try fixture.write(String(repeating: "film ", count: 10_000), "Documents/film")
    let documents = try Directory.open(path: fixture.dataDirectory().appending("Documents"))
    try documents.createHardLink("twin", to: "film", in: documents)
    let first = try #require(try fixture.plan(.update, Self.package).snapshotBound)
    let counted = try saved(fixture)
    #expect(first.files == counted.files && first.bytes == counted.bytes, "\(first), \(counted)")
    #expect(first.bytes > 50_000 && first.bytes < 100_000, "a hard-linked file counts once")
    // The estimate does not query the repository, so stored data counts again.
    let second = try #require(try fixture.plan(.update, Self.package).snapshotBound)
    let again = try saved(fixture)
    #expect(second.bytes >= again.bytes && again.bytes < 50_000, "\(second), \(again)")
    #expect(second.bytes > 50_000)
  }

  @Test func holesNeedNoSpace() throws {
    let fixture = try UpdateFixture()
    let before = try #require(try fixture.plan(.update, Self.package).snapshotBound)
    let documents = try Directory.open(path: fixture.dataDirectory().appending("Documents"))
    try documents.create("sparse").truncate(to: 1 << 30)
    let after = try #require(try fixture.plan(.update, Self.package).snapshotBound)
    #expect(after.files == before.files + 1 && after.bytes == before.bytes)
  }

  @Test func withoutASnapshotThereIsNoEstimate() throws {
    let fixture = try UpdateFixture()
    #expect(try fixture.plan(.update, Self.package) { $0.savesFirst = false }.snapshotBound == nil)
    #expect(try fixture.plan(.offload, nil).snapshotBound != nil)
    let empty = try UpdateFixture(isInstalled: false)
    #expect(try empty.plan(.install, Self.package).snapshotBound == nil)
  }
}

import ArchiveStore
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import Lifecycle

/// The removal of what is in the trash, and of directories that go as one, counted file by file.
@Suite(.spreadScans) struct TrashRemovalTests {
  /// A directory's trash with some files in it.
  private func trash(files count: Int) throws -> (rig: Fixture, trash: Trash) {
    let rig = try Fixture(inMemory: true)
    for number in 0..<count { try rig.directory.write("old", at: ByteString("tree/d/\(number)")) }
    let snapshot = try #require(try rig.backup().snapshot)
    for number in 0..<count { try rig.directory.write("new!", at: ByteString("tree/d/\(number)")) }
    let device = try Device.find(root: rig.directory.path("tree"), layout: .folder)
    var request = DeviceRestoreRequest(device, isInPlace: true, policy: try Fixture.policy(.folder))
    (request.savesFirst, request.isForced) = (false, true)
    let reader = try rig.repository.beginReading()
    let plan = try DeviceRestorePlan.make(snapshot, request, from: reader)
    _ = try DeviceRestoreOperation(
      plan, rig.repository, from: reader, saving: BackupRequest(program: "test")
    ).run()
    return (rig, Trash(of: device))
  }

  @Test func eachFileCountsOnceAndTheNoteNot() throws {
    let (rig, trash) = try trash(files: 10)
    let counters = ProgressCounters()
    for item in try trash.items() {
      #expect(item.totals.files == 10)
      #expect(try trash.remove(item, counting: counters) { false })
    }
    #expect(counters.progress.filesDone == 10)
    #expect(try trash.items().isEmpty)
    withExtendedLifetime(rig) {}
  }

  @Test func whatAStopLeavesIsStillTheOperations() throws {
    let (rig, trash) = try trash(files: 10)
    let item = try #require(try trash.items().first)
    let counters = ProgressCounters()
    #expect(try !trash.remove(item, counting: counters) { counters.progress.filesDone >= 4 })
    let left = try #require(try trash.items().first)
    #expect(left.id == item.id && left.operation == "restore" && left.subjects == item.subjects)
    #expect(left.totals.files == 6 && counters.progress.filesDone == 4)
    #expect(try trash.remove(left, counting: counters) { false })
    #expect(counters.progress.filesDone == 10)
    #expect(try trash.items().isEmpty)
    withExtendedLifetime(rig) {}
  }

  /// A purge of one directory with many files tells how far it is while they go.
  @Test func aDirectoryThatGoesAsOneCountsFileByFile() throws {
    let rig = try PurgeFixture()
    for number in 0..<20 { try rig.put(ByteString("Library/Caches/one/\(number)")) }
    let overlay = """
      overlay: all
      schema: 1
      rules:
        - {id: f, match: Library/Caches/one/**, class: cache, purge: {order: 20, unit: directory}}

      """
    let plan = try rig.plan([overlay])
    let counters = ProgressCounters()
    let report = PurgeOperation(plan, PurgeOptions(counters: counters, sign: { _, _ in nil })).run()
    #expect(report.volumes[0].units == 1 && report.volumes[0].files == 20)
    #expect(counters.progress.filesToDo == 20)
    #expect(counters.progress.filesDone == 20)
  }

  @Test func theLookBeforeAPurgeCountsDirectoriesAndStops() throws {
    let rig = try PurgeFixture()
    for number in 0..<20 { try rig.put(ByteString("Library/Caches/\(number)/file")) }
    let device = try Device.find(root: rig.directory.path(rig.root), layout: .coreSimulator)
    let counters = ProgressCounters(of: "folder")
    let scan = DeviceScan.run(
      device, policy: try PurgeFixture.policy(),
      options: .forPurge(PurgeOptions(counters: counters)))
    #expect(!scan.isInterrupted && counters.progress.filesDone >= 22)
    let stopping = PurgeOptions(isStopping: { true })
    let error = #expect(throws: LifecycleError.self) {
      try PurgeRequest.now(.everything, level: .critical, for: scan, following: stopping)
    }
    #expect(error?.kind == .interrupted)
    #expect(
      DeviceScan.run(device, policy: try PurgeFixture.policy(), options: .forPurge(stopping))
        .isInterrupted)
  }
}

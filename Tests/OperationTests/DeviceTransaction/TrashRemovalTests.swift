import ArchiveStore
import Backup
import DeviceDiscovery
import DeviceScan
import PolicyEngine
import Restore
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import DeviceTransaction
@testable import Purge

/// The removal of trash items, and of directories that are removed as a unit, counted file by file.
@Suite(.spreadScans) struct TrashRemovalTests {
  /// A directory's trash with some files in it.
  private func trash(files count: Int) throws -> (fixture: Fixture, trash: Trash) {
    let fixture = try Fixture(inMemory: true)
    for number in 0..<count {
      try fixture.directory.write("old", at: ByteString("tree/d/\(number)"))
    }
    let snapshot = try #require(try fixture.backup().snapshot)
    for number in 0..<count {
      try fixture.directory.write("new!", at: ByteString("tree/d/\(number)"))
    }
    let device = try Device.find(root: fixture.directory.path("tree"), layout: .folder)
    var request = DeviceRestoreRequest(device, isInPlace: true, policy: try Fixture.policy(.folder))
    (request.savesFirst, request.isForced) = (false, true)
    let reader = try fixture.repository.beginReading()
    let plan = try DeviceRestorePlan.make(snapshot, request, from: reader)
    _ = try DeviceRestoreOperation(
      plan, from: reader,
      saving: SafetySnapshotMaker(BackupRequest(program: "test"), in: fixture.repository)
    ).run()
    return (fixture, Trash(of: device))
  }

  @Test func eachFileCountsOnceWithoutTheRecord() throws {
    let (fixture, trash) = try trash(files: 10)
    let counters = ProgressCounters()
    for item in try trash.items() {
      #expect(item.totals.files == 10)
      #expect(try trash.remove(item, counting: counters) { false })
    }
    #expect(counters.progress.filesDone == 10)
    #expect(try trash.items().isEmpty)
    withExtendedLifetime(fixture) {}
  }

  @Test func afterAStopTheRestBelongsToTheOperation() throws {
    let (fixture, trash) = try trash(files: 10)
    let item = try #require(try trash.items().first)
    let counters = ProgressCounters()
    #expect(try !trash.remove(item, counting: counters) { counters.progress.filesDone >= 4 })
    let left = try #require(try trash.items().first)
    #expect(left.id == item.id && left.operation == "restore" && left.subjects == item.subjects)
    #expect(left.totals.files == 6 && counters.progress.filesDone == 4)
    #expect(try trash.remove(left, counting: counters) { false })
    #expect(counters.progress.filesDone == 10)
    #expect(try trash.items().isEmpty)
    withExtendedLifetime(fixture) {}
  }

  /// The trash of a container on another volume moves with the device.
  @Test func trashOnOtherVolumesIsFoundAfterTheDeviceMoved() throws {
    let (fixture, trash) = try trash(files: 2)
    let item = try #require(try trash.unmeasured().first)
    let own = try Directory.open(path: try #require(item.directories.first))
    let written = TrashDirectory.Note(in: own, of: item.id)
    var note = try #require(written)
    let inner = ByteString("d/.sandboxctl/trash").appending(item.id)
    note.elsewhere = [fixture.directory.path("tree").appending(inner)]
    try AtomicFile.write(note.bytes, as: TrashDirectory.Note.file, in: own, permissions: 0o600)
    try fixture.directory.write("old", at: ByteString("tree").appending(inner).appending("file"))
    let root = try Directory.open(path: fixture.directory.path)
    try root.rename("tree", to: "moved", in: root)
    let moved = try Device.find(root: fixture.directory.path("moved"), layout: .folder)
    let found = try #require(try Trash(of: moved).unmeasured().first)
    let elsewhere = fixture.directory.path("moved").appending(inner)
    #expect(found.directories.contains(elsewhere), "\(found.directories)")
    try Trash(of: moved).remove(found)
    #expect(try Directory.open(path: elsewhere.parent).names().isEmpty)
    withExtendedLifetime(fixture) {}
  }

  @Test func readOnlyDirectoriesAreRemovedByTheirOwner() throws {
    let (fixture, trash) = try trash(files: 2)
    let item = try #require(try trash.items().first)
    let path = try #require(item.directories.first)
    try Directory.open(path: path.appending("folders/tree/d")).setPermissions(0o555)
    _ = try Program.run("chown", ["-R", "nobody", fixture.directory.string])
    let isRemoved = try Unprivileged.run(keepingGroup: true) {
      try trash.remove(item, counting: ProgressCounters()) { false }
    }
    #expect(isRemoved)
    #expect(try trash.items().isEmpty)
  }

  /// A purge of one directory with many files reports its progress file by file.
  @Test func aDirectoryRemovedAsAUnitCountsFileByFile() throws {
    let fixture = try PurgeFixture()
    for number in 0..<20 { try fixture.put(ByteString("Library/Caches/one/\(number)")) }
    let overlay = """
      overlay: all
      schema: 1
      rules:
        - {id: f, match: Library/Caches/one/**, class: cache, purge: {order: 20, unit: directory}}

      """
    let plan = try fixture.plan([overlay])
    let counters = ProgressCounters()
    let report = PurgeOperation(plan, PurgeOptions(counters: counters, sign: { _, _ in nil })).run()
    #expect(report.volumes[0].units == 1 && report.volumes[0].files == 20)
    #expect(counters.progress.filesToDo == 20)
    #expect(counters.progress.filesDone == 20)
  }

  @Test func theScanBeforeAPurgeCountsDirectoriesAndStops() throws {
    let fixture = try PurgeFixture()
    for number in 0..<20 { try fixture.put(ByteString("Library/Caches/\(number)/file")) }
    let device = try Device.find(root: fixture.directory.path(fixture.root), layout: .coreSimulator)
    let counters = ProgressCounters(of: "folder")
    let scan = DeviceScan.run(
      device, policy: try PurgeFixture.policy(),
      options: .forPurge(PurgeOptions(counters: counters)))
    #expect(!scan.isInterrupted && counters.progress.filesDone >= 22)
    let stopping = PurgeOptions(isStopping: { true })
    let error = #expect(throws: OperationError.self) {
      try PurgeRequest.now(.everything, level: .critical, for: scan, following: stopping)
    }
    #expect(error?.kind == .interrupted)
    #expect(
      DeviceScan.run(device, policy: try PurgeFixture.policy(), options: .forPurge(stopping))
        .isInterrupted)
  }
}

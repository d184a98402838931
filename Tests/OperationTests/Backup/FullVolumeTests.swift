import ArchiveStore
import Backup
import DeviceDiscovery
import DeviceScan
import DeviceTransaction
import Restore
import SandboxModel
import Synchronization
import SystemIO
import TestSupport
import Testing

/// A volume that another program fills during a backup or a restore, which no prior check of the
/// free space can foresee.
@Suite(.spreadScans) struct FullVolumeTests {
  @Test(.enabled(if: try Mount.isPermitted()))
  func aVolumeFilledDuringABackupKeepsTheEarlierBackup() throws {
    let fixture = try Fixture(inMemory: true)
    let mount = try Mount(on: fixture.directory.directory, at: fixture.directory.path, "small")
    let local = try LocalStorage.create(path: fixture.directory.path("small/repo"))
    let storage = WatchedStorage(local)
    let repository = try Repository.create(in: storage, program: "test")
    try fixture.directory.write("first", at: "tree/first")
    let first = try #require(try fixture.backup(to: repository, keeping: "cache").snapshot)
    try fixture.directory.write(Seeded(4).someBytes(3_000_000), at: "tree/second")
    storage.state.withLock { state in
      state.action = { event in if event == "append" { Self.fill(fixture) } }
    }
    let error = #expect(throws: StoreError.self) {
      try fixture.backup(to: repository, keeping: "cache")
    }
    #expect(error?.description.contains("no space") == true, "\(error as Any)")
    #expect(error?.hint != nil)
    storage.state.withLock { $0.action = nil }
    #expect(try fixture.names("small/repo/leases").isEmpty)
    #expect(try repository.snapshots().snapshots.map(\.id) == [first.id])
    let check = RepositoryCheck(repository, reading: .everything, workers: 1)
    #expect(try check.run().forEachFinding { _ in }.damaged == 0)
    // With free space again, the same backup succeeds.
    try fixture.directory.directory.directory("small").remove("filler")
    let next = try fixture.backup(to: repository, keeping: "cache")
    #expect(next.isComplete)
    #expect(try fixture.restore(next, from: repository).isComplete)
    #expect(try fixture.records("back") == fixture.records("tree"))
    withExtendedLifetime(mount) {}
  }

  /// Another program fills a device's volume while a restore is staged: each file is old or new,
  /// replaced files are kept, nothing needs recovery, and a later restore completes it.
  ///
  /// (`DeviceFaultTests` tests failures while files are moved into place: how many pages a full
  /// tmpfs still provides is not predictable.)
  @Test(.enabled(if: try Mount.isPermitted()))
  func aDeviceFilledDuringARestoreLosesNothing() throws {
    let fixture = try Fixture(inMemory: true)
    let mount = try Mount(on: fixture.directory.directory, at: fixture.directory.path, "small")
    let names = (0..<40).map { ByteString("small/tree/folder \($0 % 4)/\($0)") }
    for name in names { try fixture.directory.write("stored \(name)", at: name) }
    let device = try Device.find(root: fixture.directory.path("small/tree"), layout: .folder)
    let policy = try Fixture.policy(.folder)
    let plan = BackupPlan.make(DeviceScan.run(device, policy: policy))
    let snapshot = try #require(
      try BackupOperation(plan, to: fixture.repository, BackupRequest(program: "test")).run()
        .snapshot)
    for name in names { try fixture.directory.write("now of \(name)", at: name) }
    let storage = WatchedStorage(fixture.repository.storage)
    let repository = try Repository.open(storage)
    let restore = {
      let reader = try repository.beginReading()
      var request = DeviceRestoreRequest(device, isInPlace: true, policy: policy)
      (request.savesFirst, request.isForced) = (false, true)
      let plan = try DeviceRestorePlan.make(snapshot, request, from: reader)
      storage.state.withLock { state in
        state.action = { event in if event.contains("packs/") { Self.fill(fixture) } }
      }
      defer { storage.state.withLock { $0.action = nil } }
      return try DeviceRestoreOperation(
        plan, from: reader,
        saving: SafetySnapshotMaker(BackupRequest(program: "test"), in: repository)
      ).run()
    }
    let error = #expect(throws: OperationError.self) { try restore() }
    #expect(error?.description.contains("no space") == true, "\(error as Any)")
    let trash = try fixture.records("small/tree").keys.filter { $0.isWithin(".sandboxctl/trash") }
    for name in names {
      let text = try fixture.text(name)
      #expect(text == "now of \(name)" || text == "stored \(name)")
      let isKept = trash.contains { $0.components.suffix(2) == name.components.suffix(2) }
      #expect(text == "now of \(name)" || isKept, "\(name)")
    }
    try fixture.directory.directory.directory("small").remove("filler")
    #expect(try InterruptedOperation.all(on: device.root).isEmpty)
    #expect(
      try !fixture.names("small/tree").contains { $0.bytes.starts(with: ".sandboxctl-".utf8) })
    let reader = try repository.beginReading()
    var request = DeviceRestoreRequest(device, isInPlace: true, policy: policy)
    (request.savesFirst, request.isForced) = (false, true)
    let rest = try DeviceRestorePlan.make(snapshot, request, from: reader)
    let report = try DeviceRestoreOperation(
      rest, from: reader,
      saving: SafetySnapshotMaker(BackupRequest(program: "test"), in: repository)
    ).run()
    #expect(report.parts.allSatisfy { $0.report.isComplete })
    for name in names { #expect(try fixture.text(name) == "stored \(name)") }
    withExtendedLifetime(mount) {}
  }

  /// The same for a merge into a plain directory: it stays unchanged.
  @Test(.enabled(if: try Mount.isPermitted()))
  func aDirectoryFilledDuringARestoreIsUnchanged() throws {
    let fixture = try Fixture(inMemory: true)
    let mount = try Mount(on: fixture.directory.directory, at: fixture.directory.path, "small")
    for number in 0..<40 {
      try fixture.directory.write("stored \(number)", at: ByteString("tree/\(number)"))
      try fixture.directory.write("now", at: ByteString("small/into/\(number)"))
    }
    let snapshot = try #require(try fixture.backup().snapshot)
    let before = try fixture.records("small/into")
    let storage = WatchedStorage(fixture.repository.storage)
    let reader = try Repository.open(storage).beginReading()
    let plan = try RestorePlan.make(
      snapshot,
      RestoreRequest(
        path: "folders/tree", target: fixture.directory.path("small/into"), overwrite: .always),
      from: reader)
    #expect(plan.volumeNeeds(from: reader).map(\.verdict) == [.fits])
    storage.state.withLock { state in
      state.action = { event in if event.contains("packs/") { Self.fill(fixture) } }
    }
    let error = #expect(throws: OperationError.self) {
      try RestoreOperation(plan, from: reader).run()
    }
    #expect(error?.description.contains("no space") == true, "\(error as Any)")
    #expect(try fixture.records("small/into") == before)
    withExtendedLifetime(mount) {}
  }

  /// If the repository is on the same volume, there must be space for both the snapshot before the
  /// restore and the restored files.
  @Test(.enabled(if: try Mount.isPermitted()))
  func theSnapshotBeforeARestoreNeedsSpace() throws {
    let fixture = try Fixture(inMemory: true)
    let mount = try Mount(on: fixture.directory.directory, at: fixture.directory.path, "small")
    var random = Seeded(11)
    try fixture.directory.write(random.bytes(1_000_000), at: "small/tree/film")
    let device = try Device.find(root: fixture.directory.path("small/tree"), layout: .folder)
    let policy = try Fixture.policy(.folder)
    let repository = try Repository.create(
      in: try LocalStorage.create(path: fixture.directory.path("small/repo")), program: "test")
    let saving = BackupRequest(program: "test")
    let snapshot = try #require(
      try BackupOperation(
        BackupPlan.make(DeviceScan.run(device, policy: policy)), to: repository, saving
      ).run().snapshot)
    // Compared with the last snapshot, 1 MB is new and must be saved.
    try fixture.directory.write(random.bytes(2_000_000), at: "small/tree/film")
    let small = try Directory.open(path: fixture.directory.path("small"))
    let space = try small.space()
    let room = 1_500_000 + space.total / 20
    try small.create("filler").write(
      [UInt8](repeating: 1, count: Int(space.available - room)))
    let restore = {
      let reader = try repository.beginReading()
      var request = DeviceRestoreRequest(device, isInPlace: true, policy: policy)
      request.isForced = true
      let plan = try DeviceRestorePlan.make(snapshot, request, from: reader)
      #expect(plan.volumeNeeds(from: reader).map(\.verdict) == [.fits])
      return try DeviceRestoreOperation(
        plan, from: reader, saving: SafetySnapshotMaker(saving, in: repository)
      ).run()
    }
    let error = #expect(throws: OperationError.self) { try restore() }
    #expect(
      error?.description.contains("are needed after the backup") == true, "\(error as Any)")
    #expect(try repository.snapshots().snapshots.map(\.id) == [snapshot.id])
    #expect(try InterruptedOperation.all(on: device.root).isEmpty)
    try small.remove("filler")
    #expect(try restore().parts.allSatisfy { $0.report.isComplete })
    withExtendedLifetime(mount) {}
  }

  /// Writes until the volume is full.
  @Sendable private static func fill(_ fixture: Fixture) {
    guard let filler = try? fixture.directory.directory.directory("small").openOrCreate("filler"),
      let end = try? filler.status().size, (try? filler.seek(to: end)) != nil
    else { return }
    for count in [1 << 16, 1 << 12] {
      let bytes = [UInt8](repeating: 1, count: count)
      while (try? filler.write(bytes)) != nil {}
    }
  }
}

extension Seeded {
  /// Random bytes from a new generator.
  func someBytes(_ count: Int) -> [UInt8] {
    var generator = self
    return generator.bytes(count)
  }
}

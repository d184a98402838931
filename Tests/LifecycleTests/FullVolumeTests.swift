import ArchiveStore
import Lifecycle
import SandboxModel
import Synchronization
import SystemIO
import TestSupport
import Testing

/// A repository's volume that another program fills while a backup writes: what no look at the free
/// space beforehand can know.
@Suite(.spreadScans) struct FullVolumeTests {
  @Test(.enabled(if: try Mount.isPermitted()))
  func aVolumeThatIsFilledMeanwhileKeepsTheEarlierBackup() throws {
    let rig = try Fixture(inMemory: true)
    let mount = try Mount(on: rig.directory.directory, at: rig.directory.path, "small")
    let local = try LocalStorage.create(path: rig.directory.path("small/repo"))
    let storage = WatchedStorage(local)
    let repository = try Repository.create(in: storage, program: "test")
    try rig.directory.write("first", at: "tree/first")
    let first = try #require(try rig.backup(to: repository, keeping: "cache").snapshot)
    try rig.directory.write(Seeded(4).someBytes(3_000_000), at: "tree/second")
    storage.state.withLock { state in
      state.action = { event in if event == "append" { Self.fill(rig) } }
    }
    let error = #expect(throws: StoreError.self) {
      try rig.backup(to: repository, keeping: "cache")
    }
    #expect(error?.description.contains("no space") == true, "\(error as Any)")
    #expect(error?.hint != nil)
    storage.state.withLock { $0.action = nil }
    #expect(try rig.names("small/repo/leases").isEmpty)
    #expect(try repository.snapshots().snapshots.map(\.id) == [first.id])
    let check = RepositoryCheck(repository, reading: .everything, workers: 1)
    #expect(try check.run().tell { _ in }.damaged == 0)
    // Once there is room the same run succeeds.
    try rig.directory.directory.directory("small").remove("filler")
    let next = try rig.backup(to: repository, keeping: "cache")
    #expect(next.isComplete)
    #expect(try rig.restore(next, from: repository).isComplete)
    #expect(try rig.records("back") == rig.records("tree"))
    withExtendedLifetime(mount) {}
  }

  /// A device's volume that another program fills while a restore into it is staged: each file is old
  /// or new, what gave way is kept, nothing need be recovered, and later it is completed. (That a call
  /// fails while files are placed is `DeviceFaultTests`: how many pages a full tmpfs still gives
  /// cannot be told to the page.)
  @Test(.enabled(if: try Mount.isPermitted()))
  func aDeviceThatIsFilledMeanwhileLosesNothing() throws {
    let rig = try Fixture(inMemory: true)
    let mount = try Mount(on: rig.directory.directory, at: rig.directory.path, "small")
    let names = (0..<40).map { ByteString("small/tree/folder \($0 % 4)/\($0)") }
    for name in names { try rig.directory.write("stored \(name)", at: name) }
    let device = try Device.find(root: rig.directory.path("small/tree"), layout: .folder)
    let policy = try Fixture.policy(.folder)
    let plan = BackupPlan.make(DeviceScan.run(device, policy: policy))
    let snapshot = try #require(
      try BackupOperation(plan, to: rig.repository, BackupRequest(program: "test")).run().snapshot)
    for name in names { try rig.directory.write("now of \(name)", at: name) }
    let storage = WatchedStorage(rig.repository.storage)
    let repository = try Repository.open(storage)
    let restore = {
      let reader = try repository.beginReading()
      var request = DeviceRestoreRequest(device, isInPlace: true, policy: policy)
      (request.savesFirst, request.isForced) = (false, true)
      let plan = try DeviceRestorePlan.make(snapshot, request, from: reader)
      storage.state.withLock { state in
        state.action = { event in if event.contains("packs/") { Self.fill(rig) } }
      }
      defer { storage.state.withLock { $0.action = nil } }
      return try DeviceRestoreOperation(
        plan, repository, from: reader, saving: BackupRequest(program: "test")
      ).run()
    }
    let error = #expect(throws: LifecycleError.self) { try restore() }
    #expect(error?.description.contains("no space") == true, "\(error as Any)")
    let trash = try rig.records("small/tree").keys.filter { $0.isWithin(".sandboxctl/trash") }
    for name in names {
      let text = try rig.text(name)
      #expect(text == "now of \(name)" || text == "stored \(name)")
      let isKept = trash.contains { $0.components.suffix(2) == name.components.suffix(2) }
      #expect(text == "now of \(name)" || isKept, "\(name)")
    }
    try rig.directory.directory.directory("small").remove("filler")
    #expect(try InterruptedOperation.all(on: device.root).isEmpty)
    #expect(try !rig.names("small/tree").contains { $0.bytes.starts(with: ".sandboxctl-".utf8) })
    let reader = try repository.beginReading()
    var request = DeviceRestoreRequest(device, isInPlace: true, policy: policy)
    (request.savesFirst, request.isForced) = (false, true)
    let rest = try DeviceRestorePlan.make(snapshot, request, from: reader)
    let report = try DeviceRestoreOperation(
      rest, repository, from: reader, saving: BackupRequest(program: "test")
    ).run()
    #expect(report.parts.allSatisfy { $0.report.isComplete })
    for name in names { #expect(try rig.text(name) == "stored \(name)") }
    withExtendedLifetime(mount) {}
  }

  /// The same for a plain directory, into which a restore that had room is merged: it is as it was.
  @Test(.enabled(if: try Mount.isPermitted()))
  func aDirectoryThatIsFilledMeanwhileIsAsItWas() throws {
    let rig = try Fixture(inMemory: true)
    let mount = try Mount(on: rig.directory.directory, at: rig.directory.path, "small")
    for number in 0..<40 {
      try rig.directory.write("stored \(number)", at: ByteString("tree/\(number)"))
      try rig.directory.write("now", at: ByteString("small/into/\(number)"))
    }
    let snapshot = try #require(try rig.backup().snapshot)
    let before = try rig.records("small/into")
    let storage = WatchedStorage(rig.repository.storage)
    let reader = try Repository.open(storage).beginReading()
    let plan = try RestorePlan.make(
      snapshot,
      RestoreRequest(
        path: "folders/tree", target: rig.directory.path("small/into"), overwrite: .always),
      from: reader)
    #expect(plan.volumeNeeds(from: reader).map(\.verdict) == [.fits])
    storage.state.withLock { state in
      state.action = { event in if event.contains("packs/") { Self.fill(rig) } }
    }
    let error = #expect(throws: LifecycleError.self) {
      try RestoreOperation(plan, from: reader).run()
    }
    #expect(error?.description.contains("no space") == true, "\(error as Any)")
    #expect(try rig.records("small/into") == before)
    withExtendedLifetime(mount) {}
  }

  /// On one volume with the repository, what is saved first and what comes back have to fit together.
  @Test(.enabled(if: try Mount.isPermitted()))
  func theSnapshotBeforeARestoreNeedsRoomToo() throws {
    let rig = try Fixture(inMemory: true)
    let mount = try Mount(on: rig.directory.directory, at: rig.directory.path, "small")
    var random = Seeded(11)
    try rig.directory.write(random.bytes(1_000_000), at: "small/tree/film")
    let device = try Device.find(root: rig.directory.path("small/tree"), layout: .folder)
    let policy = try Fixture.policy(.folder)
    let repository = try Repository.create(
      in: try LocalStorage.create(path: rig.directory.path("small/repo")), program: "test")
    let saving = BackupRequest(program: "test")
    let snapshot = try #require(
      try BackupOperation(
        BackupPlan.make(DeviceScan.run(device, policy: policy)), to: repository, saving
      ).run().snapshot)
    // What is new by what the last snapshot says, and so has to be saved, is 1 MB.
    try rig.directory.write(random.bytes(2_000_000), at: "small/tree/film")
    let small = try Directory.open(path: rig.directory.path("small"))
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
      return try DeviceRestoreOperation(plan, repository, from: reader, saving: saving).run()
    }
    let error = #expect(throws: LifecycleError.self) { try restore() }
    #expect(
      error?.description.contains("are to be written there afterwards") == true, "\(error as Any)")
    #expect(try repository.snapshots().snapshots.map(\.id) == [snapshot.id])
    #expect(try InterruptedOperation.all(on: device.root).isEmpty)
    try small.remove("filler")
    #expect(try restore().parts.allSatisfy { $0.report.isComplete })
    withExtendedLifetime(mount) {}
  }

  /// Writes until nothing more fits.
  @Sendable private static func fill(_ rig: Fixture) {
    guard let filler = try? rig.directory.directory.directory("small").openOrCreate("filler"),
      let end = try? filler.status().size, (try? filler.seek(to: end)) != nil
    else { return }
    for count in [1 << 16, 1 << 12] {
      let bytes = [UInt8](repeating: 1, count: count)
      while (try? filler.write(bytes)) != nil {}
    }
  }
}

extension Seeded {
  /// Random bytes of a generator that is used once.
  func someBytes(_ count: Int) -> [UInt8] {
    var generator = self
    return generator.bytes(count)
  }
}

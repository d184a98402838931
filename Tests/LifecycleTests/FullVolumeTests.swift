import ArchiveStore
import Lifecycle
import SandboxModel
import Synchronization
import SystemIO
import TestSupport
import Testing

/// A repository's volume that another program fills while a backup writes: what no look at the free
/// space beforehand can know.
@Suite struct FullVolumeTests {
  @Test(.enabled(if: try Mount.isPermitted()))
  func aVolumeThatIsFilledMeanwhileKeepsTheEarlierBackup() throws {
    let rig = try Rig(inMemory: true)
    let mount = try Mount(on: rig.folder.folder, at: rig.folder.path, "small")
    let local = try LocalStorage.create(path: rig.folder.path("small/repo"))
    let storage = WatchedStorage(local)
    let repository = try Repository.create(in: storage, program: "test")
    try rig.folder.write("first", at: "tree/first")
    let first = try #require(try rig.backup(to: repository, keeping: "cache").snapshot)
    try rig.folder.write(Seeded(4).someBytes(3_000_000), at: "tree/second")
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
    #expect(try check.run { _ in }.damaged == 0)
    // Once there is room the same run succeeds.
    try rig.folder.folder.folder("small").remove("filler")
    let next = try rig.backup(to: repository, keeping: "cache")
    #expect(next.isComplete)
    #expect(try rig.restore(next, from: repository).isComplete)
    #expect(try rig.records("back") == rig.records("tree"))
    withExtendedLifetime(mount) {}
  }

  /// A device's volume that another program fills while a restore into it is staged, or placed: each
  /// file is old or new, what gave way is kept, nothing need be recovered, and later it is completed.
  @Test(.enabled(if: try Mount.isPermitted()), arguments: [false, true])
  func aDeviceThatIsFilledMeanwhileLosesNothing(isLate: Bool) throws {
    let rig = try Rig(inMemory: true)
    let mount = try Mount(on: rig.folder.folder, at: rig.folder.path, "small")
    let names = (0..<40).map { ByteString("small/tree/folder \($0 % 4)/\($0)") }
    for name in names { try rig.folder.write("stored \(name)", at: name) }
    let device = try Device.find(root: rig.folder.path("small/tree"), layout: .folder)
    let policy = try Rig.policy(.folder)
    let plan = BackupPlan.make(DeviceScan.run(device, policy: policy))
    let snapshot = try #require(
      try BackupOperation(plan, to: rig.repository, BackupRequest(program: "test")).run().snapshot)
    for name in names { try rig.folder.write("now of \(name)", at: name) }
    let storage = WatchedStorage(rig.repository.storage)
    let repository = try Repository.open(storage)
    let restore = {
      let reader = try repository.beginReading()
      var request = DeviceRestoreRequest(device, isInPlace: true, policy: policy)
      (request.savesFirst, request.isForced) = (false, true)
      let plan = try DeviceRestorePlan.make(snapshot, request, from: reader)
      storage.state.withLock { state in
        // Late: what is staged just fits, a page for each file, and what comes after it does not.
        state.action = { event in
          if event.contains("packs/") { Self.fill(rig, leaving: isLate ? 40 : 0) }
        }
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
    try rig.folder.folder.folder("small").remove("filler")
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

  /// Writes until nothing more fits.
  @Sendable private static func fill(_ rig: Rig, leaving pages: UInt64 = 0) {
    guard let filler = try? rig.folder.folder.folder("small").openOrCreate("filler"),
      let end = try? filler.status().size, (try? filler.seek(to: end)) != nil
    else { return }
    for count in [1 << 16, 1 << 12] {
      let bytes = [UInt8](repeating: 1, count: count)
      while (try? filler.write(bytes)) != nil {}
    }
    if pages > 0, let size = try? filler.status().size {
      try? filler.truncate(to: size > pages << 12 ? size - pages << 12 : 0)
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

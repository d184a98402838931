import ArchiveStore
import Lifecycle
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

  /// Writes until nothing more fits.
  @Sendable private static func fill(_ rig: Rig) {
    guard let filler = try? rig.folder.folder.folder("small").openOrCreate("filler"),
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

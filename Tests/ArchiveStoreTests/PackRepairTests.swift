import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Repairs of damaged packs: intact blobs are stored again, and the index no longer names the
/// packs.
struct PackRepairTests {
  private static let files = (0..<20).map { number in
    ("file-\(number)", SeededBytes.some(seed: UInt64(number), count: 2000))
  }

  /// A repository with two backups, in a storage whose calls can fail.
  private struct Fixture {
    let memory = MemoryStorage()
    let storage: WatchedStorage
    let repository: Repository
    let snapshot: StoredSnapshot

    init() throws {
      storage = WatchedStorage(memory)
      repository = try Repository.create(in: storage, program: "test")
      snapshot = try repository.back(up: PackRepairTests.files, sequence: 1)
      _ = try repository.back(up: [("other", [1, 2, 3])], sequence: 2)
    }

    /// Returns the largest pack, which contains the files.
    func pack() throws -> Digest {
      try #require(try RepositoryListing.packSizes(memory).max { $0.value < $1.value }?.key)
    }

    /// Changes a byte in the middle of the pack's content, and runs a check that records the
    /// damage.
    func damage() throws -> Digest {
      let pack = try pack()
      try memory.changeContent(RepositoryLayout.tested.pack(pack)) { $0[$0.count / 2] ^= 0xff }
      try check()
      return pack
    }

    func check() throws {
      try RepositoryCheck(repository, reading: .everything, workers: 1).run().recordDamage()
    }

    /// Removes leases that could not be released, as if they had expired.
    func removeLeases() throws {
      for name in try memory.list(RepositoryLayout.leases) {
        let lease = RepositoryLayout.leases.appending(name)
        for sign in try memory.list(lease) { try memory.remove(lease.appending(sign)) }
        try memory.remove(lease)
      }
    }

    func repair(dry: Bool = false) throws -> PackRepair.Report {
      try PackRepair(repository, isDry: dry).run()
    }

    /// Returns the names of the files that can be read completely.
    func readable() throws -> Set<String> {
      let reader = try Repository.open(memory).beginReading()
      return Set(
        PackRepairTests.files.filter { name, bytes in
          (try? reader.bytes(at: ByteString(name), in: snapshot)) == bytes
        }.map(\.0))
    }
  }

  @Test func intactBlobsAreStoredAgainAndThePackIsMovedAway() throws {
    let fixture = try Fixture()
    let pack = try fixture.damage()
    let readable = try fixture.readable()
    #expect(readable.count == Self.files.count - 1)
    let bytes = try fixture.memory.load(RepositoryLayout.tested.pack(pack), limit: 1 << 20)
    fixture.storage.state.withLock { $0.events = [] }
    let dry = try fixture.repair(dry: true)
    #expect(dry.packs.map(\.savedBlobs) == [19] && dry.lostBlobs == 1 && dry.indexes == 1)
    let changes = fixture.storage.state.withLock(\.events).filter { event in
      ["commit", "rename", "remove", "touch", "start", "folders"].contains { event.hasPrefix($0) }
    }
    #expect(changes.isEmpty, "\(changes)")
    let report = try fixture.repair()
    #expect(report.packs.map(\.id) == [pack] && report.packs.map(\.state) == [.damaged])
    #expect(report.packs.map(\.savedBlobs) == [19] && report.packs.map(\.savedBytes) == [38_000])
    #expect(report.lostBlobs == 1 && report.indexes == 1)
    #expect(
      try fixture.memory.load(RepositoryLayout.tested.setAside(pack), limit: 1 << 20) == bytes)
    #expect(try fixture.readable() == readable)
    #expect(try fixture.repair().isIdle)
    // The loss is now reported for the snapshot, no longer for an object.
    let checked = try Checked(fixture.repository, .everything)
    #expect(checked.damaged.isEmpty && checked.costs.count == 1, "\(checked.findings)")
    _ = try fixture.repository.back(up: Self.files, sequence: 3)
    let again = try Checked(fixture.repository, .everything)
    #expect(again.findings.isEmpty, "\(again.findings)")
    #expect(try fixture.memory.list(RepositoryLayout.leases).isEmpty)
  }

  @Test func missingPackIsRemovedFromTheIndex() throws {
    let fixture = try Fixture()
    let pack = try fixture.pack()
    try fixture.memory.remove(RepositoryLayout.tested.pack(pack))
    let report = try fixture.repair()
    #expect(report.packs.map(\.state) == [.missing] && report.lostBlobs == 20)
    #expect(try Checked(fixture.repository, .everything).damaged.isEmpty)
    _ = try fixture.repository.back(up: Self.files, sequence: 3)
    #expect(try fixture.readable().count == Self.files.count)
  }

  /// A directory with the name of a pack is not a pack: the pack is missing, and once the index no
  /// longer names it, nothing is damaged.
  @Test func aDirectoryInPlaceOfAPackIsNotAPack() throws {
    let fixture = try Fixture()
    let path = RepositoryLayout.tested.pack(try fixture.pack())
    try fixture.memory.remove(path)
    try fixture.memory.makeDirectories([path.name], in: path.directory)
    #expect(try !Checked(fixture.repository, .everything).damaged.isEmpty)
    let report = try fixture.repair()
    #expect(report.packs.map(\.state) == [.missing] && report.lostBlobs == 20)
    let checked = try Checked(fixture.repository, .everything)
    #expect(checked.damaged.isEmpty, "\(checked.findings)")
    #expect("\(checked.findings)".contains("\(path.name)"))
    #expect("\(checked.findings)".contains("it does not belong there"))
  }

  /// Blobs that a backup has already stored again are not stored a third time.
  @Test func blobsInOtherPacksAreNeitherStoredNorLost() throws {
    let fixture = try Fixture()
    _ = try fixture.damage()
    _ = try fixture.repository.back(up: Self.files, sequence: 3)
    let packs = try RepositoryListing.packs(fixture.memory).count
    let report = try fixture.repair()
    #expect(report.packs.map(\.savedBlobs) == [0] && report.lostBlobs == 0)
    #expect(try RepositoryListing.packs(fixture.memory).count == packs - 1)
    #expect(try Checked(fixture.repository, .everything).findings.isEmpty)
    #expect(try fixture.readable().count == Self.files.count)
  }

  @Test func packThatIsIntactAgainIsKept() throws {
    let fixture = try Fixture()
    let pack = try fixture.damage()
    try fixture.memory.changeContent(RepositoryLayout.tested.pack(pack)) {
      $0[$0.count / 2] ^= 0xff
    }
    let report = try fixture.repair()
    #expect(report.packs.map(\.state) == [.whole] && report.lostBlobs == 0)
    #expect(try RepositoryListing.packs(fixture.memory).contains(pack))
    #expect(try DamageRecords(fixture.memory).packs.isEmpty)
    #expect(try Checked(fixture.repository, .everything).findings.isEmpty)
  }

  /// A pack that was built from wrong bytes, for example because of a memory error, matches its id.
  /// It is not treated as intact, and no backup relies on it.
  @Test(arguments: [false, true]) func packOfWrongBytesIsRepaired(isIndexed: Bool) throws {
    let fixture = try Fixture()
    let pack = try fixture.pack()
    let path = RepositoryLayout.tested.pack(pack)
    let original = try fixture.memory.load(path, limit: 1 << 20)
    try fixture.memory.changeContent(path) { $0[$0.count / 2] ^= 0xff }
    let bytes = try fixture.memory.load(path, limit: 1 << 20)
    let wrong = Blake2b.hash(bytes)
    try fixture.memory.remove(path)
    let (target, lease) = (RepositoryLayout.tested.pack(wrong), RepositoryLayout.leases)
    if try fixture.memory.status(target.directory) == nil {
      try fixture.memory.makeDirectories([target.directory.name], in: RepositoryLayout.packs)
    }
    try fixture.memory.save(bytes, as: target, by: lease)
    if isIndexed {
      _ = try fixture.repair()
      _ = try IndexRepair(fixture.repository).run()
    } else {
      try fixture.memory.save(original, as: path, by: lease)
    }
    try fixture.check()
    let report = try fixture.repair()
    #expect(report.packs.map(\.id) == [wrong] && report.packs.map(\.state) == [.damaged])
    #expect(report.lostBlobs == (isIndexed ? 1 : 0))
    #expect(try Checked(fixture.repository, .everything).damaged.isEmpty)
    _ = try fixture.repository.back(up: Self.files, sequence: 3)
    #expect(try Checked(fixture.repository, .everything).findings.allSatisfy { !$0.isDamage })
    #expect(try fixture.readable().count == Self.files.count)
  }

  /// Only prune restores or removes condemned packs.
  @Test func condemnedPacksAreNotRepaired() throws {
    let fixture = try Fixture()
    let pack = try fixture.damage()
    _ = try fixture.memory.condemn([pack])
    #expect(try fixture.repair().isIdle)
    #expect(try RepositoryListing.packs(fixture.memory).contains(pack))
    // The pack stays condemned when others are repaired: prune may restore it.
    let other = try #require(
      try RepositoryListing.packSizes(fixture.memory).min { $0.value < $1.value }?.key)
    try fixture.memory.change(RepositoryLayout.tested.pack(other)) { $0.removeLast(9) }
    #expect(try fixture.repair().packs.map(\.id) == [other])
    #expect(Set(try DamageRecords(fixture.memory).packs.keys) == [pack])
  }

  @Test func anotherProgramHoldsThePruneLease() throws {
    let fixture = try Fixture()
    _ = try fixture.damage()
    let right = try #require(try PruneLease(Lease(fixture.memory)))
    #expect(storeError { try fixture.repair() }?.code == .busy)
    right.release()
    #expect(try fixture.repair().lostBlobs == 1)
  }

  /// Each call fails in turn: no readable file is lost, and the next repair completes the work.
  @Test(arguments: [false, true]) func repairSurvivesEveryFailedCall(failsRepeatedly: Bool) throws {
    let counted = try Fixture()
    _ = try counted.damage()
    counted.storage.fail(at: nil)
    _ = try counted.repair()
    let count = counted.storage.calls
    #expect(count > 20)
    var failures = 0
    for number in 1...count {
      let fixture = try Fixture()
      _ = try fixture.damage()
      let readable = try fixture.readable()
      fixture.storage.fail(at: number, failsRepeatedly: failsRepeatedly)
      if storeError({ try fixture.repair() }) != nil { failures += 1 }
      fixture.storage.fail(at: nil)
      #expect(try fixture.readable() == readable, "call \(number)")
      try fixture.removeLeases()
      _ = try fixture.repair()
      #expect(try fixture.readable() == readable, "call \(number)")
      let checked = try Checked(fixture.repository, .everything)
      #expect(checked.damaged.isEmpty && checked.costs.count == 1, "\(number): \(checked.findings)")
    }
    #expect(failures > 15, "\(failures) of \(count)")
  }
}

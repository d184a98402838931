import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Snapshots that are compared with their ids, many at a time and on several threads.
struct SnapshotVerificationTests {
  private let memory = MemoryStorage()
  private let repository: Repository

  init() throws { repository = try Repository.create(in: memory, program: "test") }

  /// Stores snapshots without content.
  private func store(_ count: Int) throws -> [SnapshotID] {
    try (1...count).map { number in
      let snapshot = repository.makeSnapshot(TreeReference(.some), sequence: UInt64(number))
      let bytes = snapshot.json.compactBytes + [UInt8(ascii: "\n")]
      let id = Blake2b.hash(bytes)
      try memory.put(bytes, RepositoryLayout.tested.snapshot(id))
      return id
    }
  }

  @Test(arguments: [1, 63, 64, 129, 1000], [1, 2, 5])
  func damagedAndMissingSnapshotsAreFound(_ count: Int, _ threads: Int) throws {
    let ids = try store(count)
    #expect(repository.unverified(among: ids, threads: threads).isEmpty)
    #expect(repository.unverified(among: [], threads: threads).isEmpty)
    var expected: Set<SnapshotID> = []
    for number in Set([0, count / 2, count - 1]) {
      let path = RepositoryLayout.tested.snapshot(ids[number])
      var bytes = try memory.load(path, limit: 1 << 20)
      bytes[bytes.count / 3] ^= 1
      try memory.put(bytes, path)
      expected.insert(ids[number])
    }
    if count > 70 {
      try memory.remove(RepositoryLayout.tested.snapshot(ids[70]))
      expected.insert(ids[70])
    }
    #expect(repository.unverified(among: ids, threads: threads) == expected)
  }
}

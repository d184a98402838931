import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Cases in which a prune might mistake needed data for unused data.
struct PruneLossTests {
  /// A backup with two index objects, the first of which names only file contents.
  private func fixtureWithTwoObjects() throws -> PruneFixture {
    var fixture = try PruneFixture()
    let files = PruneFixture.files(0..<60)
    let session = try fixture.repository.beginWriting()
    let entries = try session.entries(of: files)
    try session.checkpoint()
    let tree = try session.storeTree(entries)
    let stored = try session.finish(fixture.repository.makeSnapshot(tree))
    fixture.snapshots.append((stored, files))
    return fixture
  }

  /// Packs whose index object was lost must not be mistaken for those of an interrupted backup.
  @Test func packsOfALostIndexObjectStay() throws {
    let fixture = try fixtureWithTwoObjects()
    let objects = try LoadedIndex.loadAll(from: fixture.memory).objects
    try #require(objects.count == 2)
    let data = try #require(objects.first { $0.blobs == 60 })
    try fixture.memory.remove(RepositoryLayout.tested.index(data.id))
    let packs = try fixture.packs()
    let report = try fixture.prune()
    #expect(report.lostBlobs == 60 && report.unindexedPacks == 1)
    #expect(report.plan.packs(.remove).isEmpty && report.removedPacks == 0)
    #expect(try fixture.packs() == packs)
    #expect(try fixture.lost().isEmpty)
    _ = try IndexRepair(fixture.repository).run()
    #expect(try fixture.prune().lostBlobs == 0)
    #expect(try fixture.packs() == packs)
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }

  /// The same for packs that an earlier prune condemned before the index object was lost.
  @Test func condemnedPacksOfALostIndexObjectStay() throws {
    let fixture = try fixtureWithTwoObjects()
    let objects = try LoadedIndex.loadAll(from: fixture.memory).objects
    let data = try #require(objects.first { $0.blobs == 60 })
    _ = try fixture.memory.condemn(data.packIDs)
    try fixture.memory.remove(RepositoryLayout.tested.index(data.id))
    #expect(try fixture.prune().removedPacks == 0)
    #expect(try fixture.lost().isEmpty)
    #expect(try fixture.memory.list(RepositoryLayout.condemned).isEmpty)
  }

  /// The hint names the repair of the index, which recovers the data, before any repair that gives
  /// data up.
  @Test func lostTreesAreSearchedInPacksWithoutAnIndex() throws {
    let fixture = try fixtureWithTwoObjects()
    let objects = try LoadedIndex.loadAll(from: fixture.memory).objects
    let trees = try #require(objects.first { $0.blobs == 1 })
    try fixture.memory.remove(RepositoryLayout.tested.index(trees.id))
    let error = storeError { try fixture.prune() }
    #expect(error?.kind == .damaged)
    #expect(error?.hint?.contains("lacks 1 packs: run 'sandboxctl repair index'") == true)
    #expect(try fixture.lost().isEmpty)
  }

  /// A snapshot needs packs that are condemned. While a prune runs, a backup of the same files
  /// stores their blobs again. The condemned packs are removed, and the new ones are needed from
  /// then on, although no new tree refers to them.
  @Test func copiesOfRemovedPacksAreNeeded() throws {
    var fixture = try PruneFixture()
    let files = PruneFixture.files(0..<10)
    try fixture.backUp(files)
    let early = try fixture.repository.beginWriting()
    try fixture.forget(0)
    var everything = PruneRequest()
    everything.mayRemoveAll = true
    #expect(try fixture.prune(everything).waitingPacks == 2)
    let tree = try early.storeTree(try early.entries(of: files))
    #expect(early.statistics.newBlobs == 0)
    let stored = try early.finish(fixture.repository.makeSnapshot(tree, sequence: 2))
    fixture.snapshots.append((stored, files))
    let again = fixture.duringTheSearch { repository in
      try repository.back(up: files, sequence: 3)
    }
    #expect(try fixture.prune().removedPacks == 2)
    let second = try again.value()
    #expect(second.snapshot.tree == tree)
    fixture.snapshots.append((second, files))
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
    #expect(try fixture.prune().plan.isIdle)
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }

  /// Lost data that a backup stores again during a prune is needed as well.
  @Test func lostDataThatIsStoredAgainIsNeeded() throws {
    var fixture = try PruneFixture()
    let files = PruneFixture.files(0..<10)
    try fixture.backUp(files)
    let blob = BlobID(kind: .data, digest: Blake2b.hash(files[0].bytes))
    let location = try #require(try fixture.repository.beginReading().index.set.find(blob))
    try fixture.memory.remove(RepositoryLayout.tested.pack(location.pack))
    _ = try PackRepair(fixture.repository).run()
    #expect(try fixture.plan().lostBlobs == 10)
    // An empty condemned object, which makes the prune update the needed blobs before its plan.
    _ = try fixture.memory.condemn([])
    let again = fixture.duringTheSearch { repository in
      try repository.back(up: files, sequence: 2)
    }
    #expect(try fixture.prune().lostBlobs == 0)
    fixture.snapshots.append((try again.value(), files))
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }

  /// The used data of a pack must not rely on a second copy in a pack that is removed as well.
  @Test func oneRunRemovesAllCopies() throws {
    for _ in 0..<8 {
      var fixture = try PruneFixture()
      let (many, few) = (PruneFixture.files(0..<20), PruneFixture.files(0..<3))
      let sessions = [try fixture.repository.beginWriting(), try fixture.repository.beginWriting()]
      for (number, files) in [many, few].enumerated() {
        let session = sessions[number]
        let tree = try session.storeTree(try session.entries(of: files))
        let snapshot = fixture.repository.makeSnapshot(tree, sequence: UInt64(number + 1))
        fixture.snapshots.append((try session.finish(snapshot), files))
      }
      try fixture.forget(0)
      _ = try fixture.prune()
      #expect(try fixture.plan().plan.isIdle)
      #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
    }
  }

  /// A blob that is in more packs than a reader tries is found in the last of them.
  @Test func eachOfManyCopiesIsFound() throws {
    var fixture = try PruneFixture()
    let files = PruneFixture.files(0..<3)
    let sessions = try (0..<32).map { _ in try fixture.repository.beginWriting() }
    for (number, session) in sessions.enumerated() {
      let tree = try session.storeTree(try session.entries(of: files))
      let snapshot = fixture.repository.makeSnapshot(tree, sequence: UInt64(number + 1))
      fixture.snapshots.append((try session.finish(snapshot), files))
    }
    let blob = BlobID(kind: .data, digest: Blake2b.hash(files[0].bytes))
    let objects = try LoadedIndex.loadAll(from: fixture.memory).objects
    let packs = objects.map { object in
      object.entries(of: blob).compactMap { object.record($0) }.map {
        object.pack(Int($0.pack)).id
      }
    }
    let merged = try #require(packs.max { $0.count < $1.count })
    try #require(merged.count > 16)
    let last = try #require(merged.last)
    let others = packs.joined().filter { $0 != last }
    // An interrupted removal has deleted all packs with the blob but the last one of a large index
    // object.
    _ = try fixture.memory.condemn(others)
    for pack in others { try fixture.memory.remove(RepositoryLayout.tested.pack(pack)) }
    let report = try fixture.prune()
    #expect(report.lostBlobs == 0)
    #expect(try fixture.packs().contains(last))
    #expect(try fixture.lost().isEmpty && fixture.findings().isEmpty)
  }
}

extension WritingSession {
  /// Stores files of one directory.
  func entries(of files: [(name: String, bytes: [UInt8])]) throws -> [TreeEntry] {
    let writer = try makeWriter()
    let entries = try files.map { file in
      let content = try writer.storeFile(
        logicalPath: ByteString("folders/test/" + file.name), bytes: file.bytes)
      return TreeEntry(name: ByteString(file.name), node: .file(content))
    }
    try writer.flush()
    return entries
  }
}

extension PruneFixture {
  /// Runs `body` once during the next prune, when it reads the first trees, after it has read the
  /// index.
  func duringTheSearch<Value: Sendable>(
    _ body: @escaping @Sendable (Repository) throws -> Value
  ) -> Once<Value> {
    let once = Once<Value>()
    storage.state.withLock { state in
      state.action = { [memory] event in
        guard event.hasPrefix("range packs/") else { return }
        once.run { try body(try Repository.open(memory)) }
      }
    }
    return once
  }
}

/// An operation that is run once, by its first caller.
final class Once<Value: Sendable>: Sendable {
  private let hasBegun = Atomic<Bool>(false)
  private let outcome = Mutex<Result<Value, any Error>?>(nil)

  func run(_ body: () throws -> Value) {
    if hasBegun.exchange(true, ordering: .relaxed) { return }
    let result = Result { try body() }
    outcome.withLock { $0 = result }
  }

  /// Returns the result of the operation.
  func value() throws -> Value { try #require(outcome.withLock { $0 }).get() }
}

import Codecs
import Foundation
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Merging of index objects at the end of backups.
struct MergingTests {
  private static func file(_ number: Int) -> (name: String, bytes: [UInt8]) {
    ("\(number)", SeededBytes.some(seed: UInt64(number), count: 64 + number % 7))
  }

  /// Expects `count` snapshots whose files have the content for their number, read with the index
  /// alone.
  private static func expectAll(
    _ storage: any Storage, count: Int, _ sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let repository = try Repository.open(storage)
    let snapshots = try repository.snapshots()
    #expect(snapshots.damaged.isEmpty, sourceLocation: sourceLocation)
    #expect(snapshots.snapshots.count == count, sourceLocation: sourceLocation)
    let reader = try repository.beginReading()
    for stored in snapshots.snapshots {
      for entry in try reader.entries(of: stored.snapshot.tree) {
        let number = try #require(Int(entry.name.description))
        let bytes = try reader.bytes(at: entry.name, in: stored)
        #expect(bytes == Self.file(number).bytes, sourceLocation: sourceLocation)
      }
    }
    // Nothing had to be read from the packs' own tables.
    #expect(reader.remarks.isEmpty, "\(reader.remarks)", sourceLocation: sourceLocation)
  }

  private static func indexes(_ storage: any Storage) throws -> Int {
    try RepositoryListing.indexes(storage).count
  }

  @Test func manySmallBackupsLeaveFewObjects() throws {
    let storage = MemoryStorage()
    let repository = try Repository.create(in: storage, program: "test")
    var most = 0
    for number in 1...120 {
      try repository.back(up: [Self.file(number)], sequence: UInt64(number))
      most = max(most, try Self.indexes(storage))
    }
    #expect(most <= 8, "\(most)")
    #expect(most > 1)
    try Self.expectAll(storage, count: 120)
    #expect(try storage.list(RepositoryLayout.leases).isEmpty)
    #expect(try Checked(repository, .everything).findings.isEmpty)
  }

  /// The index objects of a session's checkpoints are merged during the session, which still knows
  /// their contents.
  @Test func checkpointsAreMerged() throws {
    let storage = MemoryStorage()
    let repository = try Repository.create(in: storage, program: "test")
    let session = try repository.beginWriting()
    var entries: [TreeEntry] = []
    for number in 0..<40 {
      let file = Self.file(number)
      let content = try session.storeFile(
        logicalPath: ByteString("folders/x/\(file.name)"), bytes: file.bytes)
      entries.append(TreeEntry(name: ByteString(file.name), node: .file(content)))
      try session.checkpoint()
      #expect(try Self.indexes(storage) <= 7)
      #expect(session.known.objects.count == (try Self.indexes(storage)))
    }
    let count = session.statistics.newBlobs
    for number in 0..<40 {
      _ = try session.storeFile(logicalPath: "folders/x/again", bytes: Self.file(number).bytes)
    }
    #expect(session.statistics.newBlobs == count)
    #expect(session.indexRemark == nil)
    _ = try session.finish(repository.makeSnapshot(try session.storeTree(entries)))
    try Self.expectAll(storage, count: 1)
  }

  /// After a merge, a session still does not rely on blobs that it could not rely on before.
  @Test func mergeDoesNotMakePacksOfOthersReliable() throws {
    let storage = MemoryStorage()
    let repository = try Repository.create(in: storage, program: "test")
    let session = try repository.beginWriting()
    try repository.back(up: [Self.file(1)], sequence: 1)
    _ = try session.storeFile(logicalPath: "folders/x/y", bytes: Self.file(2).bytes)
    try session.checkpoint()
    #expect(try Self.indexes(storage) == 1)
    let other = BlobID(kind: .data, digest: Blake2b.hash(Self.file(1).bytes))
    #expect(!session.contains(other))
    #expect(session.contains(BlobID(kind: .data, digest: Blake2b.hash(Self.file(2).bytes))))
    _ = try session.storeFile(logicalPath: "folders/x/z", bytes: Self.file(1).bytes)
    #expect(session.statistics.newBlobs == 2)
  }

  /// Each storage call of a merging backup fails, once or permanently (as after a crash): every
  /// snapshot is complete when read with the index alone, and the next backup works.
  @Test(arguments: [false, true]) func mergeSurvivesEveryFailedStorageCall(failsRepeatedly: Bool)
    throws
  {
    var last = 0
    var merged = 0
    for number in stride(from: 1, to: 10_000, by: 1) {
      let memory = MemoryStorage()
      let storage = WatchedStorage(memory)
      let repository = try Repository.create(in: storage, program: "test")
      try repository.back(up: [Self.file(1)], sequence: 1)
      let session = try repository.beginWriting()
      let content = try session.storeFile(
        logicalPath: "folders/test/4", bytes: Self.file(4).bytes)
      let tree = try session.storeTree([TreeEntry(name: "4", node: .file(content))])
      storage.state.withLock { state in
        (state.calls, state.failing, state.failsRepeatedly) = (0, number, failsRepeatedly)
      }
      let error = storeError { try session.finish(repository.makeSnapshot(tree, sequence: 2)) }
      if session.indexRemark != nil { merged += 1 }
      try Self.expectAll(memory, count: error == nil ? 2 : 1)
      let again = try Repository.open(memory)
      try again.back(up: [Self.file(5)], sequence: 5)
      try Self.expectAll(memory, count: error == nil ? 3 : 2)
      last = number
      if storage.state.withLock(\.calls) < number { break }
    }
    #expect(last > 30)
    #expect(merged > 10, "merge calls failed without failing the backup")
  }

  @Test func noIndexIsMergedWhileAnotherProgramHoldsTheRight() throws {
    let directory = TemporaryDirectory()
    let storage = try LocalStorage.create(path: ByteString(directory("repo")))
    let repository = try Repository.create(in: storage, program: "test")
    let other = try Lease(storage)
    let right = try #require(try PruneLease(other))
    #expect(try PruneLease(Lease(storage)) == nil)
    for number in 1...6 {
      let session = try repository.beginWriting()
      let content = try session.storeFile(
        logicalPath: "folders/test/f", bytes: Self.file(number).bytes)
      let tree = try session.storeTree([
        TreeEntry(name: ByteString("\(number)"), node: .file(content))
      ])
      _ = try session.finish(repository.makeSnapshot(tree, sequence: UInt64(number)))
      #expect(session.indexRemark == nil)
    }
    #expect(try Self.indexes(storage) == 6)
    #expect(try right.isHeld())
    right.release()
    try repository.back(up: [Self.file(7)], sequence: 7)
    #expect(try Self.indexes(storage) <= 3)
    try Self.expectAll(storage, count: 7)
  }

  /// After an hour without a heartbeat, by the store's clock, another program can take the right
  /// to remove objects; the previous holder notices the loss.
  @Test func anExpiredRightIsTakenOver() throws {
    let directory = TemporaryDirectory()
    let storage = try LocalStorage.create(path: ByteString(directory("repo")))
    let repository = try Repository.create(in: storage, program: "test")
    let dead = try Lease(storage)
    let right = try #require(try PruneLease(dead))
    let alive = directory("repo/leases/prune/alive")
    try Self.age(alive, seconds: 1800)
    for number in 1...3 { try repository.back(up: [Self.file(number)], sequence: UInt64(number)) }
    #expect(try Self.indexes(storage) == 3)
    try Self.age(alive, seconds: 3700)
    try repository.back(up: [Self.file(4)], sequence: 4)
    #expect(try Self.indexes(storage) < 3)
    #expect(try storage.list(RepositoryLayout.leases) == [dead.path.name])
    #expect(try !right.isHeld())
    // Releasing a lost lease does not affect the next holder.
    let next = try #require(try PruneLease(Lease(storage)))
    right.release()
    #expect(try next.isHeld())
  }

  /// If the holder ended before its first heartbeat, the right to remove objects expires an hour
  /// after its discovery.
  @Test func aRightWithoutHeartbeatsExpiresAfterAnHour() throws {
    let directory = TemporaryDirectory()
    let storage = try LocalStorage.create(path: ByteString(directory("repo")))
    _ = try Repository.create(in: storage, program: "test")
    try storage.makeDirectories(["prune"], in: RepositoryLayout.leases)
    let lease = try Lease(storage)
    #expect(try PruneLease(lease) == nil)
    #expect(try PruneLease(lease) == nil)
    try Self.age(directory("repo/leases/prune/alive"), seconds: 3700)
    #expect(try PruneLease(lease) != nil)
  }

  private static func age(_ path: String, seconds: Double) throws {
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSinceNow: -seconds)], ofItemAtPath: path)
  }

  /// A program that requests the right to remove objects during its release gets it as soon as the
  /// directory is renamed, and the rest of the old lease is removed.
  @Test func theRightIsRequestedDuringItsRelease() throws {
    let memory = MemoryStorage()
    _ = try Repository.create(in: memory, program: "test")
    let storage = WatchedStorage(memory)
    let (holder, seeker) = (try Lease(storage), try Lease(memory))
    let right = try #require(try PruneLease(holder))
    let (early, late) = (Once<Bool>(), Once<PruneLease?>())
    storage.state.withLock { state in
      state.action = { event in
        if event.hasPrefix("rename leases/") { early.run { try PruneLease(seeker) == nil } }
        if event.hasPrefix("remove ") { late.run { try PruneLease(seeker) } }
      }
    }
    right.release()
    #expect(try early.value())
    let next = try #require(try late.value())
    #expect(try next.isHeld())
    let left = [holder.path.name, seeker.path.name, PruneLease.path.name]
    #expect(try memory.list(RepositoryLayout.leases) == left.sorted())
  }

  /// The directory is renamed, but the releasing program gets an error, and another program takes
  /// the right to remove objects: that program keeps it.
  @Test func aReleaseKeepsTheRightOfAnotherProgram() throws {
    let memory = MemoryStorage()
    _ = try Repository.create(in: memory, program: "test")
    let storage = WatchedStorage(memory)
    let (holder, other) = (try Lease(storage), try Lease(memory))
    let right = try #require(try PruneLease(holder))
    let taken = Mutex<PruneLease?>(nil)
    storage.state.withLock { state in
      state.failure = { event in
        guard event.hasPrefix("rename leases/"), taken.withLock({ $0 == nil }) else { return nil }
        try? memory.rename(PruneLease.path, to: RepositoryLayout.leases.appending("aside"))
        taken.withLock { $0 = try? PruneLease(other) }
        return StoreError(.system, "rename", subject: event, reason: "the test says so")
      }
    }
    right.release()
    let next = try #require(taken.withLock { $0 })
    #expect(try next.isHeld())
  }

  /// If the right to remove objects cannot be taken, the attempt leaves nothing behind, whether the
  /// failed call is before or after the rename.
  @Test(arguments: [1, 2, 3, 4, 5, 7]) func aFailedAttemptLeavesNoRight(call: Int) throws {
    let memory = MemoryStorage()
    _ = try Repository.create(in: memory, program: "test")
    let storage = WatchedStorage(memory)
    let lease = try Lease(storage)
    storage.fail(at: call)
    #expect(throws: StoreError.self) { _ = try PruneLease(lease) }
    #expect(storage.hasFailed)
    #expect(try memory.list(RepositoryLayout.leases) == [lease.path.name])
  }

  @Test func aRightThatCannotBeRenamedIsAnError() throws {
    let memory = MemoryStorage()
    _ = try Repository.create(in: memory, program: "test")
    let storage = WatchedStorage(memory)
    let lease = try Lease(storage)
    storage.state.withLock { state in
      state.failure = { event in
        guard event == "rename \(PruneLease.path)" else { return nil }
        return StoreError(.system, "rename", subject: event, reason: "the test says so")
      }
    }
    #expect(storeError { try PruneLease(lease) }?.reason == "the test says so")
    #expect(try memory.list(RepositoryLayout.leases) == [lease.path.name])
  }

  /// If the right to remove objects is lost during the removal, nothing more is removed.
  @Test func aLostRightStopsTheRemoval() throws {
    let memory = MemoryStorage()
    let storage = WatchedStorage(memory)
    let repository = try Repository.create(in: storage, program: "test")
    try repository.back(up: [Self.file(1)], sequence: 1)
    storage.state.withLock { state in
      state.action = { event in
        // The merged object, which is the second one of this run.
        guard event.hasPrefix("commit index/"), (try? Self.indexes(memory)) == 2 else { return }
        try? memory.rename(PruneLease.path, to: RepositoryLayout.leases.appending("taken"))
      }
    }
    try repository.back(up: [Self.file(2)], sequence: 2)
    #expect(try Self.indexes(memory) == 3)
    try Self.expectAll(memory, count: 2)
    storage.state.withLock { $0.action = nil }
    try repository.back(up: [Self.file(3)], sequence: 3)
    #expect(try Self.indexes(memory) < 4)
    try Self.expectAll(memory, count: 3)
  }

  /// Objects that a reader has listed are replaced before it reads them.
  @Test func readerFindsReplacedObjects() throws {
    let memory = MemoryStorage()
    let storage = WatchedStorage(memory)
    let repository = try Repository.create(in: memory, program: "test")
    try repository.back(up: [Self.file(1)], sequence: 1)
    let isFirst = Atomic<Bool>(true)
    storage.state.withLock { state in
      state.action = { event in
        guard event.hasPrefix("load index/"), isFirst.exchange(false, ordering: .relaxed) else {
          return
        }
        _ = try? repository.back(up: [Self.file(2)], sequence: 2)
      }
    }
    let reader = try Repository.open(storage).beginReading()
    let wasRead = !isFirst.load(ordering: .relaxed)
    #expect(wasRead)
    let snapshots = try repository.snapshots().snapshots
    #expect(snapshots.count == 2)
    for (number, stored) in snapshots.enumerated() {
      let file = Self.file(number + 1)
      #expect(try reader.bytes(at: ByteString(file.name), in: stored) == file.bytes)
    }
    #expect(reader.remarks.isEmpty)
  }

  @Test func condemnedPacksStayInTheIndex() throws {
    let storage = MemoryStorage()
    let repository = try Repository.create(in: storage, program: "test")
    try repository.back(up: [Self.file(1)], sequence: 1)
    let packs = try RepositoryListing.packs(storage)
    _ = try storage.condemn(packs)
    try repository.back(up: [Self.file(2)], sequence: 2)
    let objects = try LoadedIndex.loadAll(from: storage).objects
    #expect(objects.count == 1)
    #expect(Set(objects.flatMap(\.packIDs)).isSuperset(of: packs))
    try Self.expectAll(storage, count: 2)
  }

  /// A program that does not know a required prune feature removes no index object.
  @Test func unknownPruneFeaturePreventsRemoval() throws {
    let storage = MemoryStorage()
    _ = try Repository.create(in: storage, program: "test")
    try storage.change(RepositoryLayout.settings) { text in
      let changed = String(decoding: text, as: UTF8.self)
        .replacingOccurrences(of: "\"prune\": []", with: "\"prune\": [\"new\"]")
        .replacingOccurrences(of: "\"prune\":[]", with: "\"prune\":[\"new\"]")
      text = Array(changed.utf8)
    }
    let repository = try Repository.open(storage)
    #expect(repository.settings.features.prune == ["new"])
    for number in 1...4 { try repository.back(up: [Self.file(number)], sequence: UInt64(number)) }
    #expect(try Self.indexes(storage) == 4)
  }

  @Test func copiesOfMergedObjectsAreRemoved() throws {
    let directory = TemporaryDirectory()
    let storage = MemoryStorage()
    let repository = try Repository.create(in: storage, program: "test")
    let cache = IndexCache(directory: ByteString(directory("cache")))
    for number in 1...9 {
      let session = try repository.beginWriting(cache: cache)
      _ = try session.storeFile(logicalPath: "folders/x/y", bytes: Self.file(number).bytes)
      _ = try session.finish(
        repository.makeSnapshot(try session.storeTree([]), sequence: UInt64(number)))
      let copies = directory.files().filter { $0.hasSuffix(".index") }
      #expect(copies.count == (try Self.indexes(storage)))
    }
  }

  /// Several concurrent backups: all snapshots are complete when read with the index alone.
  @Test func concurrentWritersMergeSafely() throws {
    let directory = TemporaryDirectory()
    let path = ByteString(directory("repo"))
    _ = try Repository.create(in: LocalStorage.create(path: path), program: "test")
    let failures = Mutex<[String]>([])
    let workers = try Workers(count: 3, capacity: 3, name: "test")
    for writer in 0..<3 {
      workers.submit {
        do {
          let repository = try Repository.open(LocalStorage(path: path))
          for number in 0..<8 {
            let file = Self.file(writer * 100 + number)
            let sequence = UInt64(writer * 100 + number)
            try repository.back(up: [file, Self.file(900)], sequence: sequence)
          }
        } catch { failures.withLock { $0.append("\(error)") } }
      }
    }
    workers.finish()
    #expect(failures.withLock { $0 } == [])
    let storage = try LocalStorage(path: path)
    try Self.expectAll(storage, count: 24)
    try Repository.open(storage).back(up: [Self.file(500)], sequence: 500)
    #expect(try Self.indexes(storage) <= 5)
    try Self.expectAll(storage, count: 25)
    #expect(try storage.list(RepositoryLayout.leases).isEmpty)
  }
}

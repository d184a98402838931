import Codecs
import Foundation
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// The host's copies of index objects.
struct IndexCacheTests {
  private let storage = WatchedStorage(MemoryStorage())
  private let repository: Repository
  private let directory = TemporaryDirectory()
  private let path: ByteString
  private let files = (0..<30).map { ("\($0)", SeededBytes.some(seed: UInt64($0), count: 500)) }

  init() throws {
    path = ByteString(directory("cache/index"))
    repository = try Repository.create(in: storage, program: "test")
  }

  /// Returns the number of index objects read since the last call.
  private func indexLoads() -> Int {
    storage.state.withLock { state in
      defer { state.events = [] }
      return state.events.count {
        ($0.hasPrefix("load index") || $0.hasPrefix("range index"))
          && $0.hasSuffix(".index" + TestEncryption.suffix)
      }
    }
  }

  private func names() throws -> [ByteString] { try Directory.open(path: path).names() }

  private func copies() throws -> [ByteString] {
    try names().filter { $0 != IndexCache.VerifiedCopies.name }
  }

  /// Opens the repository with a cache and expects every file of a snapshot.
  private func expectWhole(_ snapshot: StoredSnapshot, _ cache: IndexCache) throws {
    let reader = try repository.beginReading(cache: cache)
    for (name, bytes) in files {
      #expect(try reader.bytes(at: ByteString(name), in: snapshot) == bytes)
    }
  }

  private func isMapped(_ cache: IndexCache) throws -> Bool {
    try LoadedIndex.loadAll(from: storage, cache: cache).objects.allSatisfy {
      if case .mapped = $0.bytes { true } else { false }
    }
  }

  @Test func objectIsCopiedOnce() throws {
    let snapshot = try repository.back(up: files)
    _ = indexLoads()
    try expectWhole(snapshot, IndexCache(directory: path))
    #expect(indexLoads() == 1)
    #expect(try copies().count == 1)
    let cache = IndexCache(directory: path)
    #expect(cache.copies?.notes.withLock { $0.count } == 1)
    try expectWhole(snapshot, cache)
    #expect(indexLoads() == 0)
    #expect(try isMapped(cache))
    let attributes = try FileManager.default.attributesOfItem(
      atPath: directory("cache/index/") + String(describing: copies()[0]))
    #expect(attributes[.posixPermissions] as? Int == 0o600)
  }

  @Test func objectOfTheWriterIsCopied() throws {
    let cache = IndexCache(directory: path)
    let session = try repository.beginWriting(cache: cache)
    let blob = try session.storeBytes([1, 2, 3], kind: .data)
    try session.checkpoint()
    #expect(session.contains(blob))
    #expect(try copies().count == 1)
    let tree = try session.storeTree([])
    _ = try session.finish(repository.makeSnapshot(tree))
    #expect(try copies().count == 1, "both were merged")
    _ = indexLoads()
    _ = try repository.beginReading(cache: IndexCache(directory: path))
    #expect(indexLoads() == 0)
  }

  @Test func copiesOfRemovedObjectsAreRemoved() throws {
    let first = try repository.back(up: files)
    let cache = IndexCache(directory: path)
    try expectWhole(first, cache)
    let old = try copies()
    for id in try RepositoryListing.indexes(storage) {
      try storage.remove(RepositoryLayout.tested.index(id))
    }
    let leftOver = directory("cache/index/.sandboxctl-0011.tmp")
    try Data([1]).write(to: URL(fileURLWithPath: leftOver))
    try expectWhole(try repository.back(up: files, sequence: 2), cache)
    #expect(try !names().contains(old[0]))
    #expect(try copies().count == 2, "a new copy may be in use")
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSinceNow: -7200)], ofItemAtPath: leftOver)
    _ = try repository.beginReading(cache: cache)
    #expect(try copies().count == 1)
  }

  /// Each byte of a copy is flipped, and the copy is truncated at each length: it is replaced, and
  /// all blobs are found.
  @Test func damagedCopyIsReplaced() throws {
    let snapshot = try repository.back(up: files)
    try expectWhole(snapshot, IndexCache(directory: path))
    let location = URL(
      fileURLWithPath: directory("cache/index/") + String(describing: try copies()[0]))
    let good = try Data(contentsOf: location)
    var damaged: [Data] = [Data(), good + Data([0]), good.prefix(100)]
    for at in stride(from: 0, to: good.count, by: 61) {
      var data = good
      data[at] ^= 0x10
      damaged.append(data)
    }
    for data in damaged {
      try data.write(to: location)
      _ = indexLoads()
      let cache = IndexCache(directory: path)
      try expectWhole(snapshot, cache)
      #expect(indexLoads() == 1)
      #expect(try isMapped(cache))
      #expect(try Data(contentsOf: location) == good)
    }
  }

  /// A copy that is modified, but keeps its modification time, is detected by its change time.
  @Test func changedCopyIsNotTrusted() throws {
    let snapshot = try repository.back(up: files)
    try expectWhole(snapshot, IndexCache(directory: path))
    let name = try copies()[0]
    let before = try Directory.open(path: path).status(name)
    usleep(20_000)
    let file = try Directory.open(path: path).openOrCreate(name)
    try file.seek(to: 200)
    try file.write([0xff, 0xff])
    try file.setModified(before.modified)
    let cache = IndexCache(directory: path)
    _ = indexLoads()
    try expectWhole(snapshot, cache)
    #expect(indexLoads() == 1)
  }

  /// Returns the verification notes of all copies, updated to the current file status.
  private func notes(_ cache: IndexCache) throws -> [IndexCache.VerifiedCopies.Note] {
    let directory = try Directory.open(path: path)
    let known = try #require(
      cache.copies?.notes.withLock { notes in notes.ids.compactMap { notes.note($0) } })
    return try known.map { note in
      note.replacing(try directory.status(ByteString(note.id.hex + ".index")))
    }
  }

  /// Returns the number of copies that need not be verified again.
  private func trusted(
    _ notes: [IndexCache.VerifiedCopies.Note], _ cache: IndexCache
  ) throws -> Int {
    let directory = try Directory.open(path: path)
    return try notes.count { note in
      let status = try directory.status(ByteString(note.id.hex + ".index"))
      return cache.copies?.notes.withLock { $0.isVerified(note.id, status) } == true
    }
  }

  /// A damaged copy that its note describes as intact is detected once the notes are invalidated,
  /// with or without a prefetch of the verification.
  @Test(arguments: [false, true]) func invalidatedCopyIsVerifiedAgain(isAhead: Bool) throws {
    let snapshot = try repository.back(up: files)
    try expectWhole(snapshot, IndexCache(directory: path))
    let file = try Directory.open(path: path).openOrCreate(try copies()[0])
    try file.seek(to: 200)
    try file.write([0xff, 0xff])
    let cache = IndexCache(directory: path)
    for note in try notes(cache) { cache.copies?.notes.withLock { $0.insert(note) } }
    if isAhead { cache.prefetchVerification() }
    cache.invalidateVerification()
    _ = indexLoads()
    try expectWhole(snapshot, cache)
    #expect(indexLoads() == 1)
    #expect(try isMapped(cache))
  }

  /// A copy whose verification was prefetched is not verified again after the next invalidation,
  /// but after later ones.
  @Test func copyIsVerifiedOnceForEachInvalidation() throws {
    for number in 1...3 {
      let bytes = SeededBytes.some(seed: UInt64(number), count: 300_000 / (number * number))
      let snapshot = try repository.back(up: [("\(number)", bytes)], sequence: UInt64(number))
      let reader = try repository.beginReading(cache: IndexCache(directory: path))
      #expect(try reader.bytes(at: ByteString("\(number)"), in: snapshot) == bytes)
    }
    let cache = IndexCache(directory: path)
    let notes = try notes(cache)
    #expect(!notes.isEmpty)
    #expect(try trusted(notes, cache) == notes.count)
    cache.prefetchVerification()
    cache.invalidateVerification()
    #expect(try trusted(notes, cache) == notes.count)
    cache.invalidateVerification()
    #expect(try trusted(notes, cache) == 0)
    cache.prefetchVerification()
    for note in notes { #expect(cache.copies?.open(note.id) != nil) }
    #expect(try trusted(notes, cache) == notes.count)
  }

  /// If the notes are missing, damaged or from another boot, copies are verified against their ids
  /// instead of being read from the repository. Copies of encrypted objects are read again, because
  /// only a note contains their expected hash.
  @Test func damagedNotesOnlyCauseAVerification() throws {
    let snapshot = try repository.back(up: files)
    try expectWhole(snapshot, IndexCache(directory: path))
    let location = URL(fileURLWithPath: directory("cache/index/checked"))
    let good = try Data(contentsOf: location)
    #expect(good.count == 40 + 152 + 32)
    var damaged: [Data] = [Data(), good + Data([0]), good.prefix(40)]
    for at in good.indices {
      var data = good
      data[at] ^= 1
      damaged.append(data)
    }
    for data in damaged {
      try data.write(to: location)
      let cache = IndexCache(directory: path)
      #expect(cache.copies?.notes.withLock { $0.count } == 0)
      _ = indexLoads()
      try expectWhole(snapshot, cache)
      #expect(indexLoads() == (TestEncryption.isOn ? 1 : 0))
      #expect(cache.copies?.notes.withLock { $0.count } == 1)
    }
  }

  @Test func directoryWritableByOthersIsNotUsed() throws {
    let snapshot = try repository.back(up: files)
    _ = try Directory.make(path: path)
    try Directory.open(path: path).setPermissions(0o777)
    let cache = IndexCache(directory: path)
    try expectWhole(snapshot, cache)
    #expect(try names().isEmpty)
    #expect(try !isMapped(cache))
  }

  @Test func linkInTheCacheIsNotFollowed() throws {
    let snapshot = try repository.back(up: files)
    try expectWhole(snapshot, IndexCache(directory: path))
    let name = try copies()[0]
    let cache = try Directory.open(path: path)
    try cache.rename(name, to: "elsewhere", in: cache)
    try cache.createLink(name, to: "elsewhere")
    _ = indexLoads()
    try expectWhole(snapshot, IndexCache(directory: path))
    #expect(indexLoads() == 1)
    #expect(try cache.status(name).kind == .file)
  }

  /// Each system call of the cache fails in turn, and correct data is read. `make test` tests a
  /// sample.
  @Test func everyFailedSystemCallIsHarmless() throws {
    let snapshot = try repository.back(up: files)
    let counting = Faults.Plan(at: .max, number: 28)
    try Faults.inject(counting) { try expectWhole(snapshot, IndexCache(directory: path)) }
    #expect(counting.count > 10)
    for failsRepeatedly in [false, true] {
      for number in Sampling.steps(4, upTo: counting.count + 1, "cache") {
        let path = ByteString(directory("\(number)-\(failsRepeatedly)"))
        let plan = Faults.Plan(at: number, number: 28, failsRepeatedly: failsRepeatedly)
        try Faults.inject(plan) { try expectWhole(snapshot, IndexCache(directory: path)) }
        try expectWhole(snapshot, IndexCache(directory: path))
      }
    }
  }

  /// Damage in the repository itself is reported with and without a cache.
  @Test func damagedObjectIsReported() throws {
    try repository.back(up: files)
    let id = try #require(try RepositoryListing.indexes(storage).first)
    var bytes = try storage.load(RepositoryLayout.tested.index(id), limit: 1 << 20)
    bytes[100] ^= 1
    let lease = try Lease(storage)
    try storage.save(bytes, as: RepositoryLayout.tested.index(id), by: lease.path)
    let remarks = try repository.beginReading(cache: IndexCache(directory: path)).remarks
    #expect(remarks.map(\.code) == [.damaged])
    #expect(remarks.first?.subject.contains(id.hex) == true)
    #expect(try copies().isEmpty)
  }
}

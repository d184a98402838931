import Codecs
import Foundation
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Writing sessions with a cache of index objects.
struct WriterCacheTests {
  private let memory: MemoryStorage
  private let storage: WatchedStorage
  private let repository: Repository
  private let directory = TemporaryDirectory()
  private let path: ByteString
  private let many = (0..<30).map { ("\($0)", SeededBytes.some(seed: UInt64($0), count: 500)) }
  private let few = [("few", SeededBytes.some(seed: 99, count: 700))]
  /// Whether the next call fails.
  private let isFailing = Flag()

  init() throws {
    memory = MemoryStorage()
    let isFailing = isFailing
    storage = WatchedStorage(memory, fails: { isFailing.isSet })
    repository = try Repository.create(in: storage, program: "test")
    path = ByteString(directory("cache/index"))
  }

  private final class Flag: Sendable {
    private let state = Mutex(false)
    var isSet: Bool { state.withLock { $0 } }
    func set(_ isSet: Bool) { state.withLock { $0 = isSet } }
  }

  /// Sets an action for each call of the storage.
  private func before(_ action: (@Sendable (String) -> Void)?) {
    storage.state.withLock { $0.action = action }
  }

  private var cache: IndexCache { IndexCache(directory: path) }

  private func blob(_ bytes: [UInt8]) -> BlobID {
    BlobID(kind: .data, digest: Blake2b.hash(bytes))
  }

  private func copies() -> [String] { directory.files().filter { $0.hasSuffix(".index") } }

  private func indexes() throws -> [Digest] { try RepositoryListing.indexes(memory) }

  /// Returns the number of index objects read at the start of a session, and expects the session to
  /// know all these files.
  private func reads(knowing files: [(String, [UInt8])], _ cache: IndexCache) throws -> Int {
    storage.state.withLock { $0.events = [] }
    let session = try repository.beginWriting(cache: cache)
    for (name, bytes) in files { #expect(session.contains(blob(bytes)), "\(name)") }
    let events = storage.state.withLock(\.events)
    session.abandon()
    return events.count { $0.hasPrefix("load index/") || $0.hasPrefix("range index/") }
  }

  private func expectAll(_ snapshots: [StoredSnapshot], _ files: [(String, [UInt8])]) throws {
    let reader = try repository.beginReading()
    for (name, bytes) in files {
      let found = try snapshots.compactMap { try reader.bytes(at: ByteString(name), in: $0) }
      #expect(found.first == bytes)
    }
    #expect(reader.remarks.isEmpty, "\(reader.remarks)")
  }

  @Test func objectIsReadOncePerHost() throws {
    try repository.back(up: many)
    try repository.back(up: few, sequence: 2)
    let count = try indexes().count
    #expect(count == 2)
    #expect(try reads(knowing: many + few, cache) == count)
    #expect(try reads(knowing: many + few, cache) == 0)
    let session = try repository.beginWriting(cache: cache)
    for object in session.known.objects {
      guard case .mapped = object.bytes else {
        Issue.record("\(object.id.hex) is in memory")
        continue
      }
    }
    #expect(session.known.objects.count == count)
  }

  /// A backup caches the objects that it has written, including merged ones.
  @Test func writtenObjectsAreCachedForTheNextBackup() throws {
    for number in 1...9 {
      let file = ("\(number)", SeededBytes.some(seed: UInt64(number), count: 90))
      try repository.back(up: [file], sequence: UInt64(number), cache: cache)
      #expect(try reads(knowing: [file], cache) == 0)
      #expect(copies().count == (try indexes().count))
    }
    #expect(try indexes().count < 5)
  }

  /// A cached copy does not prove that the repository still has the object.
  @Test func unlistedObjectsAreNotReliedOn() throws {
    try repository.back(up: many, cache: cache)
    let id = try #require(try indexes().first)
    let bytes = try memory.load(RepositoryLayout.tested.index(id), limit: 1 << 20)
    try memory.remove(RepositoryLayout.tested.index(id))
    var session = try repository.beginWriting(cache: cache)
    #expect(!session.contains(blob(many[0].1)) && session.indexedPacks.isEmpty)
    #expect(copies().isEmpty)
    session.abandon()
    // The object exists again, but its packs are condemned.
    try memory.put(bytes, RepositoryLayout.tested.index(id))
    #expect(try reads(knowing: many, cache) == 1)
    let packs = try RepositoryListing.packs(memory)
    let condemned = try memory.condemn(Array(packs))
    session = try repository.beginWriting(cache: cache)
    #expect(!session.contains(blob(many[0].1)) && session.indexedPacks.isEmpty)
    session.abandon()
    try memory.remove(RepositoryLayout.condemned.appending(ByteString(condemned + ".json")))
    #expect(try reads(knowing: many, cache) == 0)
    for pack in packs { try memory.remove(RepositoryLayout.tested.pack(pack)) }
    session = try repository.beginWriting(cache: cache)
    #expect(!session.contains(blob(many[0].1)) && session.indexedPacks.isEmpty)
    let last = try repository.back(up: many, sequence: 2, cache: cache)
    try expectAll([last], many)
  }

  /// A valid index object under the name of another one must not be trusted.
  @Test(arguments: [false, true]) func forgedCopyIsNotTrusted(hasNotes: Bool) throws {
    try repository.back(up: many, cache: cache)
    let pack = try #require(try RepositoryListing.packs(memory).first)
    let absent = blob([1, 2, 3])
    var forged = IndexBuilder()
    let frame = FrameLocation(offset: 0, stored: 9, plain: 9)
    forged.add(
      PackTables.Pack(id: pack, size: 100, frames: [frame]),
      records: [BlobRecord(id: absent, pack: 0, offset: 0, length: 3)])
    let location = URL(fileURLWithPath: directory(try #require(copies().first)))
    let good = try Data(contentsOf: location)
    try Data(forged.encode()).write(to: location)
    if !hasNotes { try FileManager.default.removeItem(atPath: directory("cache/index/checked")) }
    let session = try repository.beginWriting(cache: cache)
    #expect(!session.contains(absent))
    #expect(session.contains(blob(many[7].1)))
    #expect(session.damagedIndexes.isEmpty)
    #expect(try Data(contentsOf: location) == good)
  }

  /// A writer detects damage even if a note, by the file's size and times, describes the copy as
  /// verified.
  @Test func writerDoesNotTrustNotes() throws {
    try repository.back(up: many, cache: cache)
    let id = try #require(try indexes().first)
    let name = ByteString(id.hex + ".index")
    let location = try Directory.open(path: path)
    let good = try location.file(name).readAll(limit: 1 << 20)
    try location.openOrCreate(name).write([0xff], at: 200)
    // As if the disk, not a program, had changed the file.
    var notes = IndexCache.VerifiedCopies(in: location)
    let note = try #require(notes.note(id))
    notes.insert(note.replacing(try location.status(name)))
    notes.save(in: location, isEncrypted: TestEncryption.isOn)
    let reader = IndexCache(directory: path)
    #expect(reader.copies?.open(id) != nil, "the note hides nothing")
    #expect(try reads(knowing: many, cache) == 1)
    #expect(try location.file(name).readAll(limit: 1 << 20) == good)
    #expect(try reads(knowing: many, cache) == 0)
  }

  /// The host continues with its intact copy of the index object, and a merge replaces the damaged
  /// object with an intact one.
  @Test(arguments: ["flipped", "cut"]) func mergeRepairsAnObjectFromItsCopy(_ how: String) throws {
    var snapshots = [try repository.back(up: many, cache: cache)]
    let damaged = try #require(try indexes().first)
    try memory.change(RepositoryLayout.tested.index(damaged)) { bytes in
      if how == "cut" { bytes.removeLast(70) } else { bytes[bytes.count - 20] ^= 1 }
    }
    #expect(try repository.beginReading().remarks.count == 1)
    let session = try repository.beginWriting(cache: cache)
    // Checking the size costs no request; only `check` reads the bytes.
    let reported = how == "cut" ? ["\(RepositoryLayout.tested.index(damaged))"] : []
    #expect(session.damagedIndexes.map(\.subject) == reported)
    #expect(session.damagedIndexes.allSatisfy { $0.hint?.contains("repair index") == true })
    #expect(session.contains(blob(many[3].1)))
    session.abandon()
    #expect(try reads(knowing: many, cache) == 0)
    // A host without a copy does not rely on the object, and merges without it.
    let other = try repository.beginWriting(
      cache: IndexCache(directory: ByteString(directory("other"))))
    #expect(!other.contains(blob(many[3].1)) && other.damagedIndexes.count == 1)
    other.abandon()
    for number in 1..<9 where try indexes().contains(damaged) {
      let files = (0..<12).map {
        ("\(number) \($0)", SeededBytes.some(seed: UInt64(1000 * number + $0), count: 60))
      }
      snapshots.append(try repository.back(up: files, sequence: UInt64(number + 1), cache: cache))
    }
    #expect(try !indexes().contains(damaged))
    try expectAll(snapshots, many)
    #expect(try Checked(repository, .everything).findings.isEmpty)
  }

  /// A merged object is read back from the repository although a copy exists: otherwise, if the
  /// disk had lost it, removing the replaced objects would lose their entries.
  @Test func mergedObjectIsReadFromTheRepository() throws {
    let first = try repository.back(up: many, cache: cache)
    let others = (0..<25).map { ("o\($0)", SeededBytes.some(seed: UInt64(50 + $0), count: 60)) }
    before { [isFailing] in isFailing.set($0.contains("/removed-")) }
    let second = try repository.back(up: others, sequence: 2, cache: cache)
    isFailing.set(false)
    let old = try indexes()
    #expect(old.count == 3, "neither of the two was removed")
    // The same objects are merged again, and this time the disk loses the written data. The merged
    // object is the same as before, except that with encryption it has another name.
    let written = Mutex<ObjectPath?>(nil)
    let isLost = Flag()
    before { [memory] event in
      guard !isLost.isSet else { return }
      if let path = written.withLock({ $0 }) {
        isLost.set(true)
        try? memory.change(path) { $0[$0.count - 9] ^= 1 }
      } else if event.hasPrefix("commit index/") {
        written.withLock { $0 = ObjectPath(String(event.dropFirst("commit ".count))) }
      }
    }
    let session = try repository.beginWriting(cache: cache)
    _ = try session.finish(repository.makeSnapshot(second.snapshot.tree, sequence: 3))
    before(nil)
    #expect(isLost.isSet, "nothing was lost")
    #expect(session.indexRemark?.kind == .damaged)
    let lost = written.withLock { $0 }
    let intact = { (ids: [Digest]) in ids.filter { RepositoryLayout.tested.index($0) != lost } }
    #expect(try intact(indexes()) == intact(old))
    let reader = try repository.beginReading()
    #expect(reader.remarks.count == 1)
    for (name, bytes) in many {
      #expect(try reader.bytes(at: ByteString(name), in: first) == bytes)
    }
  }

  /// The file operations. Only the cache uses them, since the repository is in memory.
  private static let filing = Set(SystemError.Operation.allCases)
    .subtracting([.startThread, .random])

  /// Each call of the cache fails in turn: the backup succeeds, and so does the next one.
  @Test(arguments: [5, 28] as [Int32], [false, true])
  func failedCacheCallDoesNotFailABackup(_ number: Int32, failsRepeatedly: Bool) throws {
    var call = 0
    var plan: Faults.Plan
    repeat {
      call += 1
      let fixture = try WriterCacheTests()
      let first = try fixture.repository.back(up: fixture.many, cache: fixture.cache)
      plan = Faults.Plan(
        failing: Self.filing, at: call, number: number, failsRepeatedly: failsRepeatedly)
      let second = try Faults.inject(plan) {
        try fixture.repository.back(up: fixture.few, sequence: 2, cache: fixture.cache)
      }
      let third = try fixture.repository.back(
        up: [("x", [1])], sequence: 3, cache: fixture.cache)
      #expect(third.snapshot.totals.stored > 0)
      #expect(
        try fixture.reads(knowing: fixture.many + fixture.few, fixture.cache) == 0, "call \(call)")
      try fixture.expectAll([first, second], fixture.many + fixture.few)
    } while plan.hasFired && call < 500
    #expect(call > 15 && call < 500)
  }

  /// Concurrent programs that share a cache can at most remove each other's copies.
  @Test func sessionsShareACache() throws {
    let first = try repository.back(up: many, cache: cache)
    let sessions = [
      try repository.beginWriting(cache: cache), try repository.beginWriting(cache: cache),
    ]
    var snapshots = [first]
    for (number, session) in sessions.enumerated() {
      let name = "own \(number)"
      let content = try session.storeFile(
        logicalPath: ByteString("folders/test/\(name)"),
        bytes: SeededBytes.some(seed: UInt64(200 + number), count: 400))
      let tree = try session.storeTree([TreeEntry(name: ByteString(name), node: .file(content))])
      try session.checkpoint()
      #expect(session.contains(blob(many[number].1)))
      snapshots.append(
        try session.finish(repository.makeSnapshot(tree, sequence: UInt64(number + 2))))
    }
    let own = (0..<2).map { ("own \($0)", SeededBytes.some(seed: UInt64(200 + $0), count: 400)) }
    #expect(try reads(knowing: many + own, cache) <= (try indexes().count))
    #expect(try reads(knowing: many + own, cache) == 0)
    #expect(copies().count == (try indexes().count))
    try expectAll(snapshots, many + own)
  }

  /// If the cache directory cannot be used, sessions read the repository as without a cache.
  @Test(arguments: ["others can write", "a file", "no name"])
  func unusableDirectoryIsIgnored(_ how: String) throws {
    switch how {
    case "others can write":
      _ = try Directory.make(path: path)
      try Directory.open(path: path).setPermissions(0o777)
    case "a file": try Data().write(to: URL(fileURLWithPath: directory("cache")))
    default: break
    }
    let cache = how == "no name" ? IndexCache(directory: "") : cache
    let first = try repository.back(up: many, cache: cache)
    #expect(try reads(knowing: many, cache) == 1)
    #expect(try reads(knowing: many, cache) == 1)
    #expect(copies().isEmpty)
    try expectAll([first], many)
  }
}

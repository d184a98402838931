import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Snapshots are listed and selected by their heads, which the host caches.
struct SnapshotHeadTests {
  private let memory = MemoryStorage()
  private let watched: WatchedStorage
  private let repository: Repository
  private let directory = TemporaryDirectory()
  private var cache: SnapshotHeadCache {
    SnapshotHeadCache(directory: ByteString(directory("cache")))
  }

  init() throws {
    watched = WatchedStorage(memory)
    repository = try Repository.create(in: watched, program: "test")
  }

  /// Makes a snapshot with a table of classes and some apps, as in real heads.
  private func make(_ sequence: UInt64) -> Snapshot {
    var snapshot = repository.makeSnapshot(TreeReference(.some), sequence: sequence)
    snapshot.apps = (0..<3).map { number in
      var app = AppRecord(
        identifier: "org.example.\(number)", name: "App", version: "\(sequence / 400)",
        containers: [ByteString([0x61, 0xff])])
      app.groups = [AppRecord.Group(identifier: "group.example", isKnown: true)]
      return app
    }
    snapshot.device.containers = [DeviceRecord.Container(path: "apps/a/data", realPath: "/a")]
    snapshot.classes = (0..<4).map { ClassRun(path: ByteString("apps/\($0)"), name: "user-data") }
    snapshot.tags = sequence % 2 == 0 ? [] : ["odd", "with\nline feed"]
    if sequence > 1 { snapshot.parent = Blake2b.hash([1]) }
    snapshot.scope = sequence % 5 == 0 ? .apps(["org.example.0"]) : .device
    snapshot.totals.bytes = sequence
    return snapshot
  }

  @discardableResult
  private func put(_ snapshot: Snapshot) throws -> SnapshotID {
    try memory.put(snapshot.encode(), kind: .snapshot)
  }

  /// Returns the number of snapshots that `body` reads.
  private func reads(_ body: () throws -> Void) rethrows -> Int {
    watched.state.withLock { $0.events = [] }
    try body()
    return watched.state.withLock(\.events).count { $0.hasPrefix("load snapshots/") }
  }

  @Test func snapshotHeadsAreReadOnce() throws {
    for sequence in 1...1000 { try put(make(UInt64(sequence))) }
    #expect(try reads { _ = try repository.heads(cache: cache) } == 1000)
    var heads = try repository.heads(cache: cache)
    #expect(try reads { heads = try repository.heads(cache: cache) } == 0)
    #expect(heads.heads.count == 1000 && heads.damaged.isEmpty)
    // Tables are not kept in memory, and equal members are kept once.
    #expect(heads.heads.allSatisfy { $0.common.members.classes.isEmpty })
    #expect(Set(heads.heads.map { ObjectIdentifier($0.common) }).count == 6)
    let source = make(1).source
    let latest = try reads {
      let found = try repository.snapshot(among: &heads) { heads throws(StoreError) in
        try heads.latest(named: "latest")
      }
      #expect(found.snapshot == make(1000))
    }
    #expect(latest == 1)
    let history = try reads {
      let history = try repository.history(of: source, scope: .device, cache: cache)
      #expect(history.sequence == 1000 && history.last?.snapshot.sequence == 999)
    }
    #expect(history == 1)
    // The next run reads only the new snapshot.
    try put(make(1001))
    #expect(try reads { _ = try repository.heads(cache: cache) } == 1)
    #expect(watched.state.withLock(\.events).count <= 4)
  }

  @Test func cachedHeadsEqualTheSnapshots() throws {
    for sequence in 1...12 { try put(make(UInt64(sequence))) }
    let whole = try repository.snapshots().snapshots.map { SnapshotHead($0) }
    #expect(try repository.heads().heads == whole)
    #expect(try repository.heads(cache: cache).heads == whole)
    #expect(try repository.heads(cache: cache).heads == whole)
    let head = try #require(whole.last)
    let snapshot = make(12)
    #expect(head.apps == snapshot.apps && head.tags == snapshot.tags)
    #expect(head.parent == snapshot.parent && head.totals.bytes == 12)
    #expect(head.host == snapshot.host && head.user == snapshot.user)
    #expect(head.policy == snapshot.policy && head.tree == snapshot.tree)
    #expect(head.device == snapshot.device && head.reason == snapshot.reason)
  }

  @Test func cacheFollowsTheRepository() throws {
    let first = try put(make(1))
    let second = try put(make(2))
    _ = try repository.heads(cache: cache)
    try memory.remove(RepositoryLayout.tested.snapshot(first))
    #expect(try repository.heads(cache: cache).heads.map(\.id) == [second])
    #expect(cache.load().records.keys.map { $0 } == [second])
    // The head of a damaged snapshot is not cached.
    try memory.change(RepositoryLayout.tested.snapshot(second)) { $0[20] ^= 1 }
    let heads = try repository.heads(cache: cache)
    #expect(heads.heads.isEmpty && heads.damaged.count == 1)
    #expect(cache.load().records.isEmpty)
  }

  @Test func damagedCacheIsRebuilt() throws {
    for sequence in 1...3 { try put(make(UInt64(sequence))) }
    let expected = try repository.heads(cache: cache).heads
    let location = try Directory.open(path: ByteString(directory("cache")))
    let whole = try location.file("snapshot-heads").readAll(limit: 1 << 20) ?? []
    #expect(!whole.isEmpty)
    var cases = stride(from: 0, to: whole.count, by: 97).map { at in
      var bytes = whole
      bytes[at] ^= 1
      return bytes
    }
    cases += [[], [10], Array(whole.dropLast(70)), Array(whole.dropFirst(10)), whole + whole]
    // These have a valid hash, but a wrong version, too few bytes, or a changed number.
    for text in ["sandboxctl-snapshot-heads 3\n", "sandboxctl-snapshot-heads 2\n", ""] {
      cases.append(Array(text.utf8) + Blake2b.hash(Array(text.utf8)).bytes)
    }
    for at in (28..<(whole.count - 32)).filter({ whole[$0] == 0 || $0 < 40 }) {
      var bytes = Array(whole.dropLast(32))
      bytes[at] = 0xff
      bytes += Blake2b.hash(bytes).bytes
      // Some changes result in another head, but none in a crash.
      _ = try? SnapshotHeadCache.Content(decoding: bytes)
    }
    for bytes in cases {
      #expect((try? SnapshotHeadCache.Content(decoding: bytes)) == nil)
    }
    for bytes in [cases[5], cases[cases.count - 2]] {
      let file = try AtomicFile(in: location)
      try file.write(bytes)
      try file.commit(as: "snapshot-heads", durably: false)
      var heads: [SnapshotHead] = []
      #expect(try reads { heads = try repository.heads(cache: cache).heads } == 3)
      #expect(heads == expected)
      #expect(try reads { _ = try repository.heads(cache: cache) } == 0)
    }
  }

  /// A run that adds a snapshot does not store equal members again, and the members of removed
  /// snapshots do not stay forever.
  @Test func cacheStoresEqualMembersOnce() throws {
    for sequence in 1...200 { try put(make(UInt64(sequence))) }
    let first = try repository.heads(cache: cache)
    let location = try Directory.open(path: ByteString(directory("cache")))
    let size = { Int(try location.status("snapshot-heads").size) }
    let before = try size()
    #expect(before < 200 * 300)
    try put(make(201))
    let all = try repository.heads(cache: cache)
    #expect(try size() - before < 300)
    #expect(all.heads.dropLast() == first.heads[...])
    // If one scope has no more snapshots, only the common members of the others are kept.
    for head in all.heads where head.scope == .device {
      try memory.remove(RepositoryLayout.tested.snapshot(head.id))
    }
    _ = try repository.heads(cache: cache)
    let last = try repository.heads(cache: cache)
    #expect(last.heads.count == 40 && last.heads.allSatisfy { $0.scope != .device })
    #expect(last.heads == all.heads.filter { $0.scope != .device })
  }

  /// Heads that are copied from the cache file equal newly encoded ones, even after snapshots were
  /// added and removed.
  @Test func keptHeadsAreCopiedFromTheFile() throws {
    for round in 0..<12 {
      for number in 1...20 { try put(make(UInt64(round * 20 + number))) }
      let all = try repository.heads(cache: cache).heads
      let content = cache.load()
      #expect(content.records.values.allSatisfy { $0.offset != nil })
      var encoded = content
      for id in content.records.keys { encoded.records[id]?.offset = nil }
      #expect(content.encode() == encoded.encode())
      #expect(
        try SnapshotHeadCache.Content(decoding: content.encode()).records == content.records)
      for head in all where head.sequence % 5 == UInt64(round % 5) {
        try memory.remove(RepositoryLayout.tested.snapshot(head.id))
      }
    }
  }

  @Test func directoryWritableByOthersIsNotUsed() throws {
    try put(make(1))
    _ = try repository.heads(cache: cache)
    try Directory.open(path: ByteString(directory("cache"))).setPermissions(0o777)
    #expect(try reads { _ = try repository.heads(cache: cache) } == 1)
  }

  /// A head may still be cached when its object is no longer readable, because lost sectors do not
  /// change its size and time.
  @Test func damagedSnapshotIsSkippedAndNamed() throws {
    let storage = try LocalStorage.create(path: ByteString(directory("repo")))
    let repository = try Repository.create(in: storage, program: "test")
    let ids = try (UInt64(1)...3).map { sequence in
      let snapshot = repository.makeSnapshot(TreeReference(.some), sequence: sequence)
      let object = try RepositoryStorage(storage).encode(snapshot.encode())
      try storage.save(object.bytes, as: RepositoryLayout.tested.snapshot(object.id), by: .root)
      return object.id
    }
    _ = try repository.heads(cache: cache)
    let location = try Directory.open(path: ByteString(directory("repo/snapshots")))
    let name = RepositoryLayout.tested.snapshot(ids[2]).name
    let time = try location.status(name).modified
    let file = try location.fileForWriting(name)
    try file.write([0])
    try location.setModified(time, of: name)
    var heads = try repository.heads(cache: cache)
    #expect(heads.heads.map(\.id) == ids && heads.damaged.isEmpty)
    var skipped: [StoreError] = []
    let choose = { (heads: SnapshotHeads) throws(StoreError) in
      try heads.latest(named: "latest")
    }
    let found = try repository.snapshot(
      among: &heads, skip: { skipped.append($0) }, choose: choose)
    #expect(found.id == ids[1])
    #expect(skipped.map(\.subject) == ["snapshots/\(name)"])
    #expect(heads.heads.map(\.id) == Array(ids.prefix(2)) && heads.damaged == skipped)
    // A run uses the last intact snapshot, and `check` reads all of them.
    let history = try repository.history(of: found.snapshot.source, scope: .device, cache: cache)
    #expect(history.last?.id == ids[1] && history.sequence == 3)
    let read = try repository.snapshots(cache: cache) { _ in true }
    #expect(read.snapshots.map(\.id) == Array(ids.prefix(2)) && read.damaged == skipped)
  }
}

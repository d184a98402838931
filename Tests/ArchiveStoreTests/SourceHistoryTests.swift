import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// The history of earlier runs, which a backup continues.
struct SourceHistoryTests {
  private let memory = MemoryStorage()
  private let repository: Repository
  private let sources = (0..<3).map { Blake2b.hash([UInt8($0)]) }
  private let scopes: [Scope] = [.device, .apps(["org.example.a"]), .apps(["org.example.b"])]

  init() throws { repository = try Repository.create(in: memory, program: "test") }

  private func put(_ snapshot: Snapshot) throws -> SnapshotID {
    try memory.put(snapshot.encode(), kind: .snapshot)
  }

  private func make(_ source: Int, _ sequence: UInt64, seconds: Int64, scope: Int = 0) -> Snapshot {
    var snapshot = repository.makeSnapshot(TreeReference(.some), sequence: sequence)
    snapshot.source = sources[source]
    snapshot.time = Timestamp(seconds: seconds)
    snapshot.scope = scopes[scope]
    return snapshot
  }

  /// Reading only heads gives the same result as reading and sorting all snapshots, even with
  /// clocks that were set back, equal times, several scopes, and equal sequence numbers.
  @Test func historyEqualsTheListing() throws {
    var random = Seeded(4)
    for _ in 0..<120 {
      let source = Int.random(in: 0..<3, using: &random)
      let sequence = UInt64.random(in: 0..<40, using: &random)
      let seconds = Int64.random(in: 1_793_000_000..<1_793_000_050, using: &random)
      let scope = Int.random(in: 0..<2, using: &random)
      _ = try put(make(source, sequence, seconds: seconds, scope: scope))
    }
    let all = try repository.snapshots().snapshots
    for source in sources {
      let own = all.filter { $0.snapshot.source == source }
      for scope in scopes {
        let history = try repository.history(of: source, scope: scope)
        #expect(history.last == own.last { $0.snapshot.scope == scope })
        #expect(history.sequence == own.map(\.snapshot.sequence).max())
      }
    }
    let nothing = try repository.history(of: .some, scope: .device)
    #expect(nothing.last == nil && nothing.sequence == 0)
  }

  /// A damaged snapshot does not hide others, and a partly unreadable one is not used as the last
  /// one.
  @Test func unreadableSnapshotsAreSkipped() throws {
    let first = try put(make(0, 1, seconds: 1_793_000_000))
    let cut = try put(make(0, 2, seconds: 1_793_000_001))
    try memory.change(RepositoryLayout.tested.snapshot(cut)) { $0.removeLast(20) }
    var foreign = make(0, 9, seconds: 1_793_000_002)
    foreign.repository = .some
    _ = try put(foreign)
    #expect(try repository.history(of: sources[0], scope: .device).last?.id == first)
    #expect(try repository.history(of: sources[0], scope: .device).sequence == 1)
    // The head of this one is intact, but another member is invalid.
    let text = String(decoding: make(0, 3, seconds: 1_793_000_003).encode(), as: UTF8.self)
    let odd = Array(text.replacing("\"duration_ms\":0", with: "\"duration_ms\":[]").utf8)
    try memory.put(odd, kind: .snapshot)
    let history = try repository.history(of: sources[0], scope: .device)
    #expect(history.last?.id == first && history.sequence == 3)
  }

  /// Each snapshot is read once, and the selected one a second time.
  @Test func everySnapshotIsReadOnce() throws {
    for number in 1...20 {
      _ = try put(make(0, UInt64(number), seconds: 1_793_000_000 + Int64(number)))
    }
    let watched = WatchedStorage(memory)
    let opened = try Repository.open(watched)
    watched.state.withLock { $0.events = [] }
    #expect(try opened.history(of: sources[0], scope: .device).last?.snapshot.sequence == 20)
    let events = watched.state.withLock(\.events)
    #expect(events.count { $0.hasPrefix("load snapshots/") } == 21 && events.count == 22)
  }

  /// With cached heads, the cost of a run's history does not grow with the number of snapshots: the
  /// session's listing is used, only the last snapshot is read, and no status is requested. The
  /// head of a new snapshot is read and cached, and those of removed snapshots are dropped.
  @Test func runReadsOnlyTheLastOfManySnapshots() throws {
    let directory = TemporaryDirectory()
    let cache = SnapshotHeadCache(directory: ByteString(directory("cache")))
    var ids: [SnapshotID] = []
    for number in 1...300 {
      ids.append(try put(make(number % 3, UInt64(number), seconds: 1_793_000_000 + Int64(number))))
    }
    _ = try repository.heads(cache: cache)
    let watched = WatchedStorage(memory)
    let opened = try Repository.open(watched)
    let history = { () throws -> (sequence: UInt64, events: [String]) in
      let session = try opened.beginWriting()
      defer { session.abandon() }
      watched.state.withLock { $0.events = [] }
      let found = try session.history(of: sources[0], scope: .device, cache: cache)
      let events = watched.state.withLock(\.events)
      #expect(found.last?.snapshot.sequence == found.sequence)
      return (found.sequence, events)
    }
    let last = "load \(RepositoryLayout.tested.snapshot(ids[299]))"
    let first = try history()
    #expect(first.sequence == 300 && first.events == [last])
    let new = try put(make(0, 301, seconds: 1_793_000_301))
    try memory.remove(RepositoryLayout.tested.snapshot(ids[0]))
    let load = "load \(RepositoryLayout.tested.snapshot(new))"
    #expect(try history().events.filter { $0.hasPrefix("load") } == [load, load])
    let third = try history()
    #expect(third.sequence == 301 && third.events == [load])
    #expect(Set(cache.load().records.keys) == Set(ids.dropFirst() + [new]))
    // The next listing reads no snapshot either.
    watched.state.withLock { $0.events = [] }
    #expect(try opened.heads(cache: cache).heads.count == 300)
    #expect(!watched.state.withLock(\.events).contains { $0.hasPrefix("load") })
  }

  /// A snapshot that no reader would accept is refused before it is stored.
  @Test func invalidSnapshotIsNotStored() throws {
    var deep: JSON = 1
    for _ in 0..<20 { deep = ["a": deep] }
    let session = try repository.beginWriting()
    var snapshot = repository.makeSnapshot(try session.storeTree([]))
    snapshot.unknown = [JSON.Member("deep", deep)]
    let error = storeError { try session.finish(snapshot) }
    #expect(
      error?.code == .invalid && error?.reason.contains("16 levels") == true, "\(error as Any)")
    #expect(try RepositoryListing.snapshots(memory).isEmpty)
    #expect(try memory.list(RepositoryLayout.leases).isEmpty)
  }
}

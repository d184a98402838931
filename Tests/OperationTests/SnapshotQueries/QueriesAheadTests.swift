import ArchiveStore
import Backup
import PolicyEngine
import SnapshotQueries
import Synchronization
import SystemIO
import TestSupport
import Testing

/// Queries of many snapshots in a remote repository: the data that they read of all snapshots is
/// fetched at the same time.
struct QueriesAheadTests {
  /// A storage that is not a directory of this host. It records the packs of each announcement, and
  /// the ranges that are loaded without one.
  private final class Elsewhere: ForwardingStorage {
    struct State {
      var expected: [Int] = []
      var ranges: Set<ObjectRange> = []
      var unexpected = 0
    }

    let base: any Storage
    let state = Mutex(State())

    init(_ base: any Storage) { self.base = base }

    func directoryIdentity() throws(StoreError) -> FileIdentity? { nil }

    func expect(_ ranges: [ObjectRange]) {
      state.withLock { state in
        state.expected.append(Set(ranges.map(\.path)).count)
        state.ranges = Set(ranges)
      }
    }

    func load(
      _ path: ObjectPath, offset: UInt64, count: Int, into buffer: inout [UInt8]
    ) throws(StoreError) {
      let range = ObjectRange(path: path, range: offset..<(offset + UInt64(count)))
      state.withLock { if $0.ranges.remove(range) == nil { $0.unexpected += 1 } }
      try base.load(path, offset: offset, count: count, into: &buffer)
    }
  }

  private let fixture: Fixture
  private let storage: Elsewhere
  private let heads: [SnapshotHead]

  /// Makes seven snapshots; in each of them, a different file deep in a tree has changed.
  init() throws {
    fixture = try Fixture()
    try fixture.writeProject()
    for number in 0..<7 {
      try fixture.directory.write("version \(number)", at: "tree/a/b/c/file")
      _ = try fixture.backup()
    }
    storage = Elsewhere(try LocalStorage(path: fixture.directory.path("repo")))
    heads = try Repository.open(storage).heads().heads
    #expect(heads.count == 7)
  }

  /// The trees of each run are in one frame, which stays in memory after the roots were read.
  private func expectOneWait() {
    storage.state.withLock { state in
      #expect(state.expected == [7, 0])
      #expect(state.unexpected == 0)
    }
  }

  @Test func aSearchReadsAllSnapshotsAtOnce() throws {
    let reader = try Repository.open(storage).beginReading()
    let pattern = try Pattern(parsing: "file", ignoringCase: false)
    var found = 0
    try SnapshotSearch(pattern, in: heads, from: reader).run { finding in
      if case .found(_, _, let snapshots) = finding { found += snapshots.count }
    }
    #expect(found == 7)
    expectOneWait()
  }

  @Test func versionsAreLookedUpAtOnce() throws {
    let reader = try Repository.open(storage).beginReading()
    let history = try PathHistory(
      of: { _ in "folders/tree/a/b/c/file" }, in: heads, from: reader)
    #expect(history.versions.map(\.snapshots) == heads.map { [$0] })
    #expect(history.damaged.isEmpty)
    expectOneWait()
  }

  /// On this host, one snapshot after the other is looked up, with the same result.
  @Test func nothingIsAnnouncedOnThisHost() throws {
    let reader = try fixture.repository.beginReading()
    for (path, count) in [
      ("folders/tree/a/b/c/file", 7), ("folders/tree/project/1", 1), ("folders/tree", 7),
      ("folders/tree/project/1/below", 0), ("folders/tree/none/file", 0), ("", 0),
    ] {
      let here = try PathHistory(of: { _ in ByteString(path) }, in: heads, from: reader)
      let there = try PathHistory(
        of: { _ in ByteString(path) }, in: heads, from: Repository.open(storage).beginReading())
      #expect(here.versions == there.versions && here.versions.count == count, "\(path)")
    }
    #expect(try PathHistory(of: { _ in nil }, in: heads, from: reader).versions.isEmpty)
  }
}

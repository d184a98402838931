import Codecs
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// The requests that a writer sends to a store without rename.
struct ObjectStoreRequestTests {
  private let directory = TemporaryDirectory()
  private let files = PruneFixture.files(0..<3)

  private var heads: SnapshotHeadCache {
    SnapshotHeadCache(directory: ByteString(directory("heads")))
  }

  private var index: IndexCache {
    IndexCache(directory: ByteString(directory("index")), isEncrypted: TestEncryption.isOn)
  }

  /// Backs up the files, and returns the requests without ids.
  private func run(_ fixture: ObjectStoreFixture, _ sequence: UInt64) throws -> [String] {
    fixture.store.state.withLock { $0.requests = [] }
    let program = try ObjectStoreProgram(fixture.store)
    let session = try program.repository.beginWriting(cache: index)
    let source = program.repository.makeSnapshot(TreeReference(.some), sequence: 0).source
    let history = try session.history(of: source, scope: .device, cache: heads)
    #expect(history.sequence == sequence - 1)
    #expect((history.last == nil) == (sequence == 1))
    let tree = try program.store(files, session)
    let stored = try session.finish(
      program.repository.makeSnapshot(tree, sequence: sequence))
    session.record(stored, in: heads)
    #expect(try fixture.names(RepositoryLayout.leases).isEmpty)
    #expect(try fixture.names(RepositoryLayout.pending).isEmpty)
    let requests = fixture.store.state.withLock { $0.requests }.dropLast(2)
    return requests.map { request in
      let words = request.split(separator: " ", omittingEmptySubsequences: false)
      let place = words.count > 1 ? words[1].split(separator: "/").first ?? "" : ""
      return "\(words[0]) \(words[0] == "delete" && words.count > 2 ? "objects" : place)"
    }
  }

  private static let unchanged = [
    "get repository.json", "put leases", "list condemned", "objects .", "put pending",
    "list leases", "put snapshots", "list leases", "delete objects",
  ]

  /// An unchanged run lists twice, reads no snapshot and no index object, and stores its snapshot
  /// in four requests, including checks of the lease.
  @Test func anUnchangedRunMakesNineRequests() throws {
    let fixture = try ObjectStoreFixture()
    _ = try run(fixture, 1)
    // The recipients of a new repository would be read again.
    fixture.store.advance(by: 7200)
    for sequence in 2...4 as ClosedRange<UInt64> {
      let requests = try run(fixture, sequence)
      #expect(requests == Self.unchanged, "\(requests)")
    }
    // The next listing of snapshots reads none of them.
    fixture.store.state.withLock { $0.requests = [] }
    #expect(try fixture.open().heads(cache: heads).heads.count == 4)
    let requests = fixture.store.state.withLock { $0.requests }
    #expect(requests == ["get repository.json", "objects snapshots"], "\(requests)")
  }

  /// A run that stores data checks its lease once before it stores its index object, and once after
  /// that.
  @Test func anIndexObjectNeedsTwoChecksOfTheLease() throws {
    let requests = try run(try ObjectStoreFixture(), 1)
    let index = try #require(requests.firstIndex(of: "put index"))
    #expect(requests[index - 1] == "list leases")
    #expect(requests[index - 2] != "list leases", "\(requests)")
    let rest = [
      "list leases", "put pending", "list leases", "put snapshots", "list leases", "delete objects",
    ]
    #expect(Array(requests[(index + 1)...]) == rest, "\(requests)")
  }

  /// The sizes of index objects, one for each backup, are read from a listing.
  @Test func statisticsDoNotRequestEachObject() throws {
    var fixture = try ObjectStoreFixture()
    for range in [0..<3, 3..<6, 6..<9] { try fixture.backUp(PruneFixture.files(range)) }
    let repository = try fixture.open()
    let heads = try repository.heads()
    _ = try repository.statistics(of: heads, cache: index)
    fixture.store.state.withLock { $0.requests = [] }
    let statistics = try repository.statistics(of: heads, cache: index)
    let requests = fixture.store.state.withLock { $0.requests }
    #expect(!requests.contains { $0.hasPrefix("status index/") }, "\(requests)")
    let sizes = try RepositoryListing.indexesWithSizes(repository.storage).sizes
    #expect(sizes.count == 3 && statistics.indexBytes == sizes.values.clampedSum)
  }

  /// The recipients are read again unless, by the store's clock, their file was last written well
  /// before the repository was opened.
  @Test func changedRecipientsAreNoticed() throws {
    guard TestEncryption.isOn else { return }
    let fixture = try ObjectStoreFixture()
    _ = try run(fixture, 1)
    fixture.store.advance(by: 7200)
    let repository = try fixture.open()
    let settings = try fixture.store.load(RepositoryLayout.settings, limit: 1 << 20)
    let other = AgeIdentity().recipient
    let text = String(decoding: settings, as: UTF8.self)
    let own = try #require(TestEncryption.recipients.first)
    try fixture.store.save(
      Array(text.replacing(own, with: "\(other)").utf8), as: RepositoryLayout.settings, by: .root)
    #expect(storeError { try repository.beginWriting() }?.code == .busy)
  }
}

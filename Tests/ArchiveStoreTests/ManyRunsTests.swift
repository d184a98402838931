import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// A repository after a thousand runs (250 in `make test`), with a prune each week.
struct ManyRunsTests {
  /// The numbers of index objects, of small packs, and of reads to open the repository stay
  /// bounded, and nothing is lost.
  @Test func objectsStayBoundedOverManyRuns() throws {
    var fixture = try PruneFixture()
    let cache = SnapshotHeadCache(directory: ByteString(TemporaryDirectory()("cache")))
    let kept = PruneFixture.files(0..<5, size: 300)
    var (indexes, packs, opening) = (0, 0, 0)
    let runs = Sampling.count(250, of: 1000)
    for run in 0..<runs {
      try fixture.backUp(kept + PruneFixture.files(run + 10..<run + 11, size: 200))
      indexes = max(indexes, try RepositoryListing.indexes(fixture.memory).count)
      packs = max(packs, try fixture.packs().count)
      if run % 7 == 6 { _ = try fixture.prune() }
      if run % 50 == 49 { opening = max(opening, try calls(toOpen: fixture, cache)) }
    }
    // Index objects are merged if the newer one is more than half as large: log2(2000) + 1.
    #expect(indexes <= 12, "\(indexes) index objects")
    // More than 32 small packs of a kind are combined, and a week adds seven.
    #expect(packs <= 2 * (32 + 7), "\(packs) packs")
    #expect(opening <= 60, "\(opening) calls")
    #expect(try fixture.snapshots.count == runs && fixture.findings().isEmpty)
  }

  /// Returns the number of storage calls to open the repository, list its snapshots and begin to
  /// read, with cached heads.
  private func calls(toOpen fixture: PruneFixture, _ cache: SnapshotHeadCache) throws -> Int {
    _ = try fixture.repository.heads(cache: cache)
    fixture.storage.fail(at: nil)
    let repository = try Repository.open(fixture.storage)
    #expect(try repository.heads(cache: cache).heads.count == fixture.snapshots.count)
    _ = try repository.beginReading()
    return fixture.storage.calls
  }
}

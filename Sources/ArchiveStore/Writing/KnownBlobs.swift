internal import Codecs
internal import Synchronization

/// What need not be stored: the blobs of the index, and those that this run has claimed. For any
/// thread.
final class KnownBlobs: Sendable {
  private let index: Mutex<Index>
  private let run = Mutex(RunBlobs())

  /// The index, and how many times blobs of the run went over into it.
  private struct Index {
    var set: IndexSet
    var generation = 0
  }

  init(_ index: IndexSet) { self.index = Mutex(Index(set: index)) }

  var statistics: WritingStatistics { run.withLock { $0.statistics } }

  /// Claimed blobs that are in no pack yet.
  var unplaced: Int { run.withLock { $0.unplaced } }

  /// The packs that an index object names and that may be relied on.
  var packs: Set<Digest> { index.withLock { $0 }.set.packs }

  /// Whether a blob can be relied on, once the run ends well.
  func contains(_ blob: BlobID) -> Bool {
    withIndex(searching: blob) { isIndexed, run in isIndexed || run.contains(blob) }
  }

  /// Claims a blob for the thread that asks: true when it is new, and then this thread must store
  /// it. Counts it as new or as known.
  func claim(_ blob: BlobID, length: Int) -> Bool {
    withIndex(searching: blob) { isIndexed, run in
      if !isIndexed && run.insert(blob, length: length) {
        run.statistics.newBlobs += 1
        run.statistics.newBytes += UInt64(length)
        return true
      }
      run.statistics.countKnown(length)
      return false
    }
  }

  /// How many blobs of the run are in no index object yet.
  var unindexed: Int { run.withLock { $0.records.count } }

  /// Counts a blob that the caller knows to be claimed.
  func countKnown(length: Int) { run.withLock { $0.statistics.countKnown(length) } }

  /// Says where the blobs of a frame lie.
  func place(_ blobs: [PackFrame.Blob], pack: Int, frame: Int) {
    run.withLock { run in
      for blob in blobs { run.place(blob.id, pack: pack, frame: frame, offset: blob.offset) }
    }
  }

  /// The blobs of some of the run's packs.
  func records(ofPacks packs: Set<UInt32>) -> [BlobRecord] {
    run.withLock { run in run.records.filter { packs.contains($0.pack) } }
  }

  /// Takes over an index object that has all blobs of some of the run's packs.
  func add(_ object: IndexObject, packs: Set<UInt32>) {
    index.withLock { index in
      index.set.add(object)
      index.generation += 1
    }
    run.withLock { $0.remove(packs: packs) }
  }

  /// The index objects that are searched.
  var objects: [IndexObject] { index.withLock { $0 }.set.objects }

  /// Takes a merged index object in the place of those that it has the entries of. No pack is relied
  /// on that was not before.
  func replace(_ ids: Set<Digest>, by object: IndexObject) {
    index.withLock { $0.set.replace(ids, by: object) }
  }

  /// Searches the index without a lock, then runs `body` on the run's own blobs. Those that went
  /// over into the index between both are searched there.
  private func withIndex(
    searching blob: BlobID, _ body: (_ isIndexed: Bool, inout RunBlobs) -> Bool
  ) -> Bool {
    while true {
      let index = index.withLock { $0 }
      let isIndexed = index.set.contains(blob)
      let result: Bool? = run.withLock { run in
        isIndexed || run.generation <= index.generation ? body(isIndexed, &run) : nil
      }
      if let result { return result }
    }
  }
}

internal import Codecs
internal import Synchronization

/// The blobs that need not be stored: those in the index and those claimed by this run. Safe to use
/// from any thread.
final class KnownBlobs: Sendable {
  private let index: Mutex<Index>
  private let run = Mutex(RunBlobs())

  /// The index, and the number of times blobs of the run were moved into it.
  private struct Index {
    var set: IndexSet
    var generation = 0
  }

  init(_ index: IndexSet) { self.index = Mutex(Index(set: index)) }

  var statistics: WritingStatistics { run.withLock { $0.statistics } }

  /// The number of claimed blobs that are in no pack yet.
  var unplaced: Int { run.withLock { $0.unplaced } }

  /// The packs that an index object names and that may be relied on.
  var packs: Set<Digest> { index.withLock { $0 }.set.packs }

  /// Whether a blob can be relied on, provided the run succeeds.
  func contains(_ blob: BlobID) -> Bool {
    withIndex(searching: blob) { isIndexed, run in isIndexed || run.contains(blob) }
  }

  /// Claims a blob for the calling thread. Returns true if it is new; the thread must then store
  /// it. Counts the blob as new or known.
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

  /// The number of the run's blobs that are in no index object yet.
  var unindexed: Int { run.withLock { $0.records.count } }

  /// Counts a blob that the caller knows to be claimed.
  func countKnown(length: Int) { run.withLock { $0.statistics.countKnown(length) } }

  /// Records the locations of a frame's blobs.
  func place(_ blobs: [PackFrame.Blob], pack: Int, frame: Int) {
    run.withLock { run in
      for blob in blobs { run.place(blob.id, pack: pack, frame: frame, offset: blob.offset) }
    }
  }

  /// Returns the entries of the blobs in some of the run's packs.
  func records(ofPacks packs: Set<UInt32>) -> [BlobRecord] {
    run.withLock { run in run.records.filter { packs.contains($0.pack) } }
  }

  /// Adds an index object that has all blobs of some of the run's packs, and removes these from the
  /// run's blobs.
  func add(_ object: IndexObject, packs: Set<UInt32>) {
    index.withLock { index in
      index.set.add(object)
      index.generation += 1
    }
    run.withLock { $0.remove(packs: packs) }
  }

  /// The index objects that are searched.
  var objects: [IndexObject] { index.withLock { $0 }.set.objects }

  /// Replaces index objects by a merged one that has their entries. No additional pack is relied
  /// on.
  func replace(_ ids: Set<Digest>, by object: IndexObject) {
    index.withLock { $0.set.replace(ids, by: object) }
  }

  /// Searches the index without a lock, then calls `body` with the run's own blobs. Repeats the
  /// search if blobs were moved into the index in between.
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

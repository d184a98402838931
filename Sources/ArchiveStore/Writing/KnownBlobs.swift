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

  var statistics: WritingSession.Statistics { run.withLock { $0.statistics } }

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

  /// Claims the blobs of a frame for the calling thread, all or none. Returns true if all are new;
  /// the thread must then store them.
  func claim(all blobs: [BlobRecord]) -> Bool {
    while true {
      let index = index.withLock { $0 }
      if blobs.contains(where: { index.set.contains($0.id) }) { return false }
      let result: Bool? = run.withLock { run in
        guard run.generation <= index.generation else { return nil }
        if blobs.contains(where: { run.contains($0.id) }) { return false }
        for blob in blobs where run.insert(blob.id, length: Int(blob.length)) {
          run.statistics.newBlobs += 1
          run.statistics.newBytes += UInt64(blob.length)
        }
        return true
      }
      if let result { return result }
    }
  }

  /// The number of the run's blobs that are in no index object yet.
  var unindexed: Int { run.withLock { $0.records.count } }

  /// Counts a blob that the caller knows to be claimed.
  func countKnown(length: Int) { run.withLock { $0.statistics.countKnown(length) } }

  /// Records the locations of a frame's blobs.
  func record(_ blobs: [PackFrame.Blob], pack: Int, frame: Int) {
    run.withLock { run in
      for blob in blobs { run.record(blob.id, pack: pack, frame: frame, offset: blob.offset) }
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

  /// Stops relying on packs, so that their blobs are stored again.
  func exclude(_ packs: Set<Digest>) {
    index.withLock { index in
      let reliable = index.set.packs.subtracting(packs)
      index.set = IndexSet(index.set.objects) { reliable.contains($0) }
    }
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

extension KnownBlobs {
  /// The blobs that this run has claimed and that are in no index object yet, found by hash. An
  /// open-addressing table of indices into an array of entries uses 8 bytes per blob in addition to
  /// the entry's 48 bytes; a Swift dictionary uses 100.
  ///
  /// A blob is claimed before it is stored, by the thread that stores it, and all other threads
  /// rely on it at once. Each claimed blob must therefore be written to a pack, or the run must
  /// fail, which `unplaced` shows.
  struct RunBlobs {
    private(set) var records: [BlobRecord] = []
    private var slots = [UInt32](repeating: 0, count: 1024)
    /// The number of claimed blobs that are in no pack yet.
    private(set) var unplaced = 0
    /// The number of times entries were moved into an index object.
    private(set) var generation = 0
    /// The counts of claimed and of known blobs.
    var statistics = WritingSession.Statistics()

    /// The pack number of a blob that is in no pack yet.
    static let unplaced = UInt32.max

    func contains(_ blob: BlobID) -> Bool { slots[slot(of: blob)] != 0 }

    /// Adds a blob. Its location follows when its frame is in a pack. Returns false if it was added
    /// before.
    mutating func insert(_ blob: BlobID, length: Int) -> Bool {
      if records.count * 2 >= slots.count { makeSlots(slots.count * 2) }
      let slot = slot(of: blob)
      guard slots[slot] == 0 else { return false }
      records.append(
        BlobRecord(id: blob, pack: Self.unplaced, offset: 0, length: UInt32(length)))
      slots[slot] = UInt32(records.count)
      unplaced += 1
      return true
    }

    /// Records the location of a blob.
    mutating func record(_ blob: BlobID, pack: Int, frame: Int, offset: Int) {
      let number = slots[slot(of: blob)]
      guard number != 0 else { return }
      if records[Int(number) - 1].pack == Self.unplaced { unplaced -= 1 }
      records[Int(number) - 1].pack = UInt32(pack)
      records[Int(number) - 1].frame = UInt16(frame)
      records[Int(number) - 1].offset = UInt32(offset)
    }

    /// Removes the blobs of packs that are now in an index object.
    mutating func remove(packs: Set<UInt32>) {
      records.removeAll { packs.contains($0.pack) }
      var count = 1024
      while count < records.count * 2 { count *= 2 }
      makeSlots(count)
      generation += 1
    }

    /// Returns the slot that holds a blob, or the free slot for it.
    private func slot(of blob: BlobID) -> Int {
      let mask = slots.count - 1
      var at = blob.hashValue & mask
      while slots[at] != 0 && records[Int(slots[at]) - 1].id != blob { at = (at + 1) & mask }
      return at
    }

    private mutating func makeSlots(_ count: Int) {
      slots = [UInt32](repeating: 0, count: count)
      for (number, record) in records.enumerated() {
        slots[slot(of: record.id)] = UInt32(number + 1)
      }
    }
  }
}

internal import Codecs

/// The blobs that this run has claimed and that are in no index object yet, found by hash. An
/// open-addressing table of indices into an array of entries uses 8 bytes per blob in addition to
/// the entry's 48 bytes; a Swift dictionary uses 100.
///
/// A blob is claimed before it is stored, by the thread that stores it, and all other threads rely
/// on it at once. Each claimed blob must therefore be written to a pack, or the run must fail,
/// which `unplaced` shows.
struct RunBlobs {
  private(set) var records: [BlobRecord] = []
  private var slots = [UInt32](repeating: 0, count: 1024)
  /// The number of claimed blobs that are in no pack yet.
  private(set) var unplaced = 0
  /// The number of times entries were moved into an index object.
  private(set) var generation = 0
  /// The counts of claimed and of known blobs.
  var statistics = WritingStatistics()

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
  mutating func place(_ blob: BlobID, pack: Int, frame: Int, offset: Int) {
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

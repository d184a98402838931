internal import Codecs

/// The blobs that this run has claimed and that no index object has yet, found by their hash: an
/// open-addressing table of places in an array of entries, 8 bytes a blob beside the entry's 48 (a
/// Swift dictionary takes 100).
///
/// A blob is claimed before it is stored, by the thread that will store it; all others rely on it
/// at once. So a claimed blob must come into a pack, or the run must fail: `unplaced` tells.
struct RunBlobs {
  private(set) var records: [BlobRecord] = []
  private var slots = [UInt32](repeating: 0, count: 1024)
  /// Claimed blobs that are in no pack yet.
  private(set) var unplaced = 0
  /// How often records went over into an index object.
  private(set) var generation = 0
  /// What was claimed, and what was there already.
  var statistics = WritingStatistics()

  /// The entry of a blob that is in no pack yet has this in place of the pack's number.
  static let unplaced = UInt32.max

  func contains(_ blob: BlobID) -> Bool { slots[slot(of: blob)] != 0 }

  /// Adds a blob; its place follows when its frame is in a pack. False when it is there already.
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

  /// Says where a blob lies.
  mutating func place(_ blob: BlobID, pack: Int, frame: Int, offset: Int) {
    let number = slots[slot(of: blob)]
    guard number != 0 else { return }
    if records[Int(number) - 1].pack == Self.unplaced { unplaced -= 1 }
    records[Int(number) - 1].pack = UInt32(pack)
    records[Int(number) - 1].frame = UInt16(frame)
    records[Int(number) - 1].offset = UInt32(offset)
  }

  /// Forgets the blobs of packs that an index object has now.
  mutating func remove(packs: Set<UInt32>) {
    records.removeAll { packs.contains($0.pack) }
    var count = 1024
    while count < records.count * 2 { count *= 2 }
    makeSlots(count)
    generation += 1
  }

  /// The slot that holds a blob, or the free one where it belongs.
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

internal import Codecs

/// The blobs that this run has stored, found by their hash: an open-addressing table of places in
/// an array of entries, 8 bytes a blob beside the entry's 48 (a Swift dictionary takes 100).
struct RunBlobs {
  private(set) var records: [BlobRecord] = []
  private var slots: [UInt32] = [UInt32](repeating: 0, count: 1024)

  /// The entry of a pack that is still open has this in place of the pack's number.
  static let unplaced = UInt32.max

  func contains(_ blob: BlobID) -> Bool { slots[slot(of: blob)] != 0 }

  /// Adds a blob that is not there yet; its place follows when its frame is in a pack.
  mutating func insert(_ blob: BlobID, length: Int) {
    if records.count * 2 >= slots.count { grow() }
    let slot = slot(of: blob)
    guard slots[slot] == 0 else { return }
    records.append(
      BlobRecord(id: blob, pack: Self.unplaced, offset: 0, length: UInt32(length)))
    slots[slot] = UInt32(records.count)
  }

  /// Says where a blob lies.
  mutating func place(_ blob: BlobID, pack: Int, frame: Int, offset: UInt32) {
    let number = slots[slot(of: blob)]
    guard number != 0 else { return }
    records[Int(number) - 1].pack = UInt32(pack)
    records[Int(number) - 1].frame = UInt16(frame)
    records[Int(number) - 1].offset = offset
  }

  /// The slot that holds a blob, or the free one where it belongs.
  private func slot(of blob: BlobID) -> Int {
    let mask = slots.count - 1
    var at = blob.hashValue & mask
    while slots[at] != 0 && records[Int(slots[at]) - 1].id != blob { at = (at + 1) & mask }
    return at
  }

  private mutating func grow() {
    slots = [UInt32](repeating: 0, count: slots.count * 2)
    for (number, record) in records.enumerated() {
      slots[slot(of: record.id)] = UInt32(number + 1)
    }
  }
}

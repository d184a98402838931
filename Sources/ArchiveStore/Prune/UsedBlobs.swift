internal import SystemIO

/// The blobs that snapshots need: a bit for each entry of the index, 12 MB for 100 million blobs.
///
/// If a blob has several entries, only the best one is marked, so the other copies are unused.
struct UsedBlobs: Sendable {
  private var bits: [SpillableArray<UInt64>] = []
  /// The number of marked entries.
  private(set) var count = 0

  /// Adds bits for the objects of an index that have none yet.
  mutating func extend(to objects: [IndexObject]) {
    for object in objects.dropFirst(bits.count) {
      bits.append(SpillableArray(repeating: 0, count: (object.blobs + 63) / 64))
    }
  }

  /// Marks an entry. Returns false if it was marked before.
  @discardableResult
  mutating func insert(_ entry: PruneIndex.Entry) -> Bool {
    let mask = UInt64(1) << UInt64(entry.number % 64)
    let word = Int(entry.number / 64)
    guard bits[Int(entry.object)][word] & mask == 0 else { return false }
    bits[Int(entry.object)][word] |= mask
    count += 1
    return true
  }

  /// Removes the marks of an object's entries for which `isSelected` returns false.
  mutating func filter(object: Int, _ isSelected: (_ number: Int) -> Bool) {
    for word in bits[object].indices where bits[object][word] != 0 {
      var rest = bits[object][word]
      while rest != 0 {
        let bit = rest.trailingZeroBitCount
        rest &= rest - 1
        if isSelected(word * 64 + bit) { continue }
        bits[object][word] &= ~(1 << UInt64(bit))
        count -= 1
      }
    }
  }

  /// Whether an entry is marked. Entries of objects without bits are not.
  func contains(_ number: Int, of object: Int) -> Bool {
    object < bits.count && bits[object][number / 64] & (1 << UInt64(number % 64)) != 0
  }
}

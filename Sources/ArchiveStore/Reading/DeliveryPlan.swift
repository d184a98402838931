internal import Codecs

/// Uses in pack order. Packs are ordered by their first use, which keeps blobs that are close in
/// the tree close in time, then by frame and item.
struct DeliveryPlan: Sendable {
  /// The wanted blobs of one frame.
  struct Frame: Sendable {
    let place: IndexSet.Found
    let uses: Range<Int>
  }

  private(set) var frames: [Frame] = []
  /// The uses with their offset in the frame and their length.
  private(set) var uses: [(use: BlobUse, offset: Int, length: Int)] = []
  /// The uses that no index names.
  private(set) var missing: [BlobUse] = []

  /// A use and its location as numbers, so that sorting touches only 16 bytes of each.
  private struct Key {
    /// The rank of the pack in 32 bits, and the frame in 16.
    let frame: UInt64
    let number: UInt32
  }

  init(_ wanted: [BlobUse], _ index: IndexSet) {
    var ranks: [Digest: UInt64] = [:]
    var keys: [Key] = []
    var places: [IndexSet.Found?] = []
    keys.reserveCapacity(wanted.count)
    places.reserveCapacity(wanted.count)
    for (number, use) in wanted.enumerated() {
      let place = index.find(BlobID(kind: .data, digest: use.digest))
      places.append(place)
      guard let place else {
        missing.append(use)
        continue
      }
      let next = UInt64(ranks.count)
      let rank = ranks[place.pack, default: next]
      if rank == next { ranks[place.pack] = next }
      keys.append(Key(frame: rank << 16 | UInt64(place.frameNumber), number: UInt32(number)))
    }
    // Within a frame, in the order of the request: by item, then by offset.
    keys.sort { ($0.frame, $0.number) < ($1.frame, $1.number) }
    gather(keys, of: wanted, at: places)
  }

  private mutating func gather(
    _ keys: [Key], of wanted: [BlobUse], at places: [IndexSet.Found?]
  ) {
    uses.reserveCapacity(keys.count)
    var start = 0
    for (position, key) in keys.enumerated() {
      guard let place = places[Int(key.number)] else { continue }
      uses.append((wanted[Int(key.number)], place.offset, place.length))
      let isLast = position + 1 == keys.count || keys[position + 1].frame != key.frame
      if isLast {
        frames.append(Frame(place: place, uses: start..<(position + 1)))
        start = position + 1
      }
    }
  }
}

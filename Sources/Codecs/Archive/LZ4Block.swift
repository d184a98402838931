/// Decodes a block of LZ4: sequences of literals and a copy of earlier bytes.
///
/// Source: lz4, doc/lz4_Block_format.md.
struct LZ4Block {
  /// The plain bytes: those that a block may copy, and then its own.
  private(set) var plain: [UInt8]
  /// The number of valid bytes in `plain`, and of those before the last block.
  private(set) var end = 0
  private(set) var start = 0
  /// The maximum size of a block's plain bytes.
  let limit: Int

  /// The distance from which bytes can be copied.
  private static let window = 64 << 10

  init(limit: Int) {
    self.limit = limit
    plain = [UInt8](repeating: 0, count: Self.window + limit)
  }

  /// Makes room for the next block, which may copy bytes of the earlier ones if they are linked.
  mutating func begin(isLinked: Bool) {
    let kept = isLinked ? min(end, Self.window) : 0
    if kept < end { for index in 0..<kept { plain[index] = plain[end - kept + index] } }
    (start, end) = (kept, kept)
  }

  /// Takes a block that is not compressed. Returns false if it is too large.
  mutating func take(_ stored: Span<UInt8>) -> Bool {
    guard stored.count <= limit else { return false }
    append(stored, 0..<stored.count)
    return true
  }

  /// Decodes a block. Returns false if it is damaged.
  mutating func decode(_ stored: Span<UInt8>) -> Bool {
    var position = 0
    while position < stored.count {
      let token = Int(stored[position])
      position += 1
      guard let literals = Self.length(token >> 4, in: stored, at: &position),
        literals <= stored.count - position, literals <= start + limit - end
      else { return false }
      append(stored, position..<(position + literals))
      position += literals
      // The last sequence has no copy.
      if position == stored.count { return true }
      guard stored.count - position >= 2 else { return false }
      let distance = Int(stored[position]) | Int(stored[position + 1]) << 8
      position += 2
      guard distance > 0, distance <= end,
        let length = Self.length(token & 15, in: stored, at: &position),
        length + 4 <= start + limit - end
      else { return false }
      copy(length + 4, from: distance)
    }
    return false
  }

  /// Returns a length of 4 bits, extended by further bytes; nil if they are missing.
  private static func length(
    _ bits: Int, in stored: Span<UInt8>, at position: inout Int
  ) -> Int? {
    var length = bits
    if bits < 15 { return length }
    while position < stored.count {
      let next = stored[position]
      position += 1
      length += Int(next)
      if next < 255 { return length }
    }
    return nil
  }

  private mutating func append(_ bytes: Span<UInt8>, _ range: Range<Int>) {
    for index in range {
      plain[end] = bytes[index]
      end += 1
    }
  }

  /// Copies bytes, which may include bytes that the copy itself writes.
  private mutating func copy(_ count: Int, from distance: Int) {
    for index in end..<(end + count) { plain[index] = plain[index - distance] }
    end += count
  }
}

/// The hash XXH32 with the seed 0, which LZ4 frames have as checksum.
///
/// Source: the specification of xxHash, version 0.1.1 (doc/xxhash_spec.md).
struct XXHash32 {
  private var lanes = (prime1 &+ prime2, prime2, UInt32(0), 0 &- prime1)
  /// The bytes that do not fill a stripe yet.
  private var rest: [UInt8] = []
  private var count = 0

  private static let prime1: UInt32 = 0x9e37_79b1
  private static let prime2: UInt32 = 0x85eb_ca77
  private static let prime3: UInt32 = 0xc2b2_ae3d
  private static let prime4: UInt32 = 0x27d4_eb2f
  private static let prime5: UInt32 = 0x1656_67b1
  private static let stripe = 16

  /// Returns the hash of bytes.
  static func hash(_ bytes: Span<UInt8>) -> UInt32 {
    var hash = XXHash32()
    hash.update(bytes)
    return hash.value
  }

  /// Hashes the next bytes.
  mutating func update(_ bytes: Span<UInt8>) {
    count += bytes.count
    var position = 0
    if !rest.isEmpty {
      position = min(Self.stripe - rest.count, bytes.count)
      for index in 0..<position { rest.append(bytes[index]) }
      guard rest.count == Self.stripe else { return }
      let whole = exchange(&rest, with: [])
      mix(whole.span, at: 0)
    }
    while bytes.count - position >= Self.stripe {
      mix(bytes, at: position)
      position += Self.stripe
    }
    for index in position..<bytes.count { rest.append(bytes[index]) }
  }

  /// The hash of all bytes so far.
  var value: UInt32 {
    var hash =
      count >= Self.stripe
      ? lanes.0.rotated(1) &+ lanes.1.rotated(7) &+ lanes.2.rotated(12) &+ lanes.3.rotated(18)
      : Self.prime5
    hash = hash &+ UInt32(truncatingIfNeeded: count)
    var position = 0
    while rest.count - position >= 4 {
      let word = LittleEndian.word32(rest.span, at: position)
      hash = (hash &+ word &* Self.prime3).rotated(17) &* Self.prime4
      position += 4
    }
    for byte in rest[position...] {
      hash = (hash &+ UInt32(byte) &* Self.prime5).rotated(11) &* Self.prime1
    }
    hash = (hash ^ hash >> 15) &* Self.prime2
    hash = (hash ^ hash >> 13) &* Self.prime3
    return hash ^ hash >> 16
  }

  private mutating func mix(_ bytes: Span<UInt8>, at position: Int) {
    lanes.0 = Self.round(lanes.0, LittleEndian.word32(bytes, at: position))
    lanes.1 = Self.round(lanes.1, LittleEndian.word32(bytes, at: position + 4))
    lanes.2 = Self.round(lanes.2, LittleEndian.word32(bytes, at: position + 8))
    lanes.3 = Self.round(lanes.3, LittleEndian.word32(bytes, at: position + 12))
  }

  private static func round(_ lane: UInt32, _ word: UInt32) -> UInt32 {
    (lane &+ word &* prime2).rotated(13) &* prime1
  }
}

extension UInt32 {
  fileprivate func rotated(_ bits: UInt32) -> UInt32 { self << bits | self >> (32 - bits) }
}

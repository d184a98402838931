/// A pseudorandom number generator that is deterministic for a seed on every machine (SplitMix64).
struct SampleRandom: RandomNumberGenerator {
  private var state: UInt64

  /// Creates a generator from a text, hashed with FNV-1a.
  init(_ seed: String) {
    state = seed.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3 }
  }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  /// Returns a number below `bound`. The standard library's method may change between versions.
  mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

  /// Returns incompressible bytes.
  mutating func bytes(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + 8)
    while bytes.count < count {
      let word = next()
      for shift in stride(from: UInt64(0), to: 64, by: 8) {
        bytes.append(UInt8(truncatingIfNeeded: word >> shift))
      }
    }
    bytes.removeLast(bytes.count - count)
    return bytes
  }
}

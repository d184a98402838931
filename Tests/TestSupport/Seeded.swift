import Foundation

/// A seeded random generator, so that failures can be reproduced (SplitMix64: Steele, Lea and
/// Flood, "Fast splittable pseudorandom number generators", 2014).
package struct Seeded: RandomNumberGenerator, Sendable {
  /// The seed of the generator.
  package let seed: UInt64
  private var state: UInt64

  /// Begins with a seed: the same seed yields the same numbers.
  package init(_ seed: UInt64) {
    self.seed = seed
    state = seed
  }

  /// Begins with a random seed, or with `SANDBOXCTL_SEED`, and prints it.
  package static func fresh(_ label: String = #function) -> Seeded {
    let given = ProcessInfo.processInfo.environment["SANDBOXCTL_SEED"].flatMap { UInt64($0) }
    let seed = given ?? UInt64.random(in: 0...UInt64.max)
    print("seed of \(label): \(seed) (SANDBOXCTL_SEED=\(seed) makes it again)")
    return Seeded(seed)
  }

  package mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  /// Random bytes.
  package mutating func bytes(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + 8)
    while bytes.count < count { withUnsafeBytes(of: next()) { bytes.append(contentsOf: $0) } }
    bytes.removeLast(bytes.count - count)
    return bytes
  }

  /// A file name of any bytes that Linux allows, from 1 to `longest` bytes long.
  package mutating func fileName(longest: Int = 24) -> [UInt8] {
    while true {
      let name = bytes(Int.random(in: 1...longest, using: &self)).map { byte in
        byte == 0 || byte == UInt8(ascii: "/") ? UInt8(ascii: "\n") : byte
      }
      if name != [UInt8(ascii: ".")], name != Array("..".utf8) { return name }
    }
  }
}

/// A set of bytes, such as `[a-z]` in a pattern.
struct ByteSet: Hashable, Sendable {
  private var word0: UInt64 = 0
  private var word1: UInt64 = 0
  private var word2: UInt64 = 0
  private var word3: UInt64 = 0

  /// All bytes permitted in a file name: all except the slash.
  static let all: ByteSet = {
    var set = ByteSet()
    for byte in UInt8.min...UInt8.max where byte != UInt8(ascii: "/") { set.insert(byte) }
    return set
  }()

  init() {}

  init(_ bytes: some Sequence<UInt8>) {
    for byte in bytes { insert(byte) }
  }

  @inline(__always)
  func contains(_ byte: UInt8) -> Bool {
    let word =
      switch byte >> 6 {
      case 0: word0
      case 1: word1
      case 2: word2
      default: word3
      }
    return word >> UInt64(byte & 63) & 1 == 1
  }

  mutating func insert(_ byte: UInt8) {
    let bit: UInt64 = 1 << UInt64(byte & 63)
    switch byte >> 6 {
    case 0: word0 |= bit
    case 1: word1 |= bit
    case 2: word2 |= bit
    default: word3 |= bit
    }
  }

  func intersection(_ other: ByteSet) -> ByteSet {
    var set = self
    set.word0 &= other.word0
    set.word1 &= other.word1
    set.word2 &= other.word2
    set.word3 &= other.word3
    return set
  }

  /// The bytes permitted in a name that are not in this set.
  var inverted: ByteSet { ByteSet(Self.all.members.filter { !contains($0) }) }

  func isSuperset(of other: ByteSet) -> Bool { intersection(other) == other }

  var members: [UInt8] { (UInt8.min...UInt8.max).filter(contains) }

  /// A byte of the set, preferably a letter, or nil if the set is empty.
  var sample: UInt8? {
    let letters = UInt8(ascii: "a")...UInt8(ascii: "z")
    return letters.last(where: contains) ?? members.last
  }
}

extension ByteSet {
  /// Returns an ASCII letter in both cases, or nil for any other byte.
  static func bothCases(of byte: UInt8) -> ByteSet? {
    let lower = byte | 0x20
    guard UInt8(ascii: "a")...UInt8(ascii: "z") ~= lower else { return nil }
    return ByteSet([lower, lower & ~0x20])
  }

  /// The set with each ASCII letter in both cases.
  var ignoringCase: ByteSet {
    var set = self
    for byte in members {
      for other in Self.bothCases(of: byte)?.members ?? [] { set.insert(other) }
    }
    return set
  }
}

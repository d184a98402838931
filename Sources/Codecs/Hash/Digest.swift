/// A BLAKE2b-256 digest: the name of a blob, a pack, an index or a snapshot.
///
/// Digests are ordered by their 32 bytes.
public struct Digest: Hashable, Sendable, BitwiseCopyable {
  /// The number of bytes.
  public static let byteCount = 32

  /// The bytes as four big-endian words, whose order is that of the bytes.
  @usableFromInline let word0, word1, word2, word3: UInt64

  @usableFromInline init(word0: UInt64, word1: UInt64, word2: UInt64, word3: UInt64) {
    self.word0 = word0
    self.word1 = word1
    self.word2 = word2
    self.word3 = word3
  }

  /// Creates a digest from 32 bytes; nil for any other number.
  public init?(_ bytes: Span<UInt8>) {
    guard bytes.count == Self.byteCount else { return nil }
    self.init(
      word0: Self.word(bytes, 0), word1: Self.word(bytes, 8), word2: Self.word(bytes, 16),
      word3: Self.word(bytes, 24))
  }

  /// Creates a digest from 32 bytes; nil for any other number.
  public init?(_ bytes: [UInt8]) { self.init(bytes.span) }

  /// Creates a digest from the 32 bytes at `offset`, which must exist.
  public init(_ bytes: RawSpan, at offset: Int) {
    precondition(offset >= 0 && bytes.byteCount - offset >= Self.byteCount)
    self.init(
      word0: Self.word(bytes, offset), word1: Self.word(bytes, offset + 8),
      word2: Self.word(bytes, offset + 16), word3: Self.word(bytes, offset + 24))
  }

  private static func word(_ bytes: RawSpan, _ start: Int) -> UInt64 {
    unsafe bytes.unsafeLoadUnaligned(fromByteOffset: start, as: UInt64.self).bigEndian
  }

  private static func word(_ bytes: Span<UInt8>, _ start: Int) -> UInt64 {
    var word: UInt64 = 0
    for index in start..<(start + 8) { word = word << 8 | UInt64(bytes[index]) }
    return word
  }

  /// The 32 bytes.
  public var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Self.byteCount)
    append(to: &bytes)
    return bytes
  }

  /// Appends the 32 bytes to a buffer.
  public func append(to buffer: inout [UInt8]) {
    let words = (word0.bigEndian, word1.bigEndian, word2.bigEndian, word3.bigEndian)
    unsafe withUnsafeBytes(of: words) { unsafe buffer.append(contentsOf: $0) }
  }

  /// The first eight bytes as a number: enough to detect damage, not to identify objects.
  public var leadingWord: UInt64 { word0 }

  /// The first two bytes as a number, for the fan-out of a table.
  public var prefix: UInt16 { UInt16(truncatingIfNeeded: word0 >> 48) }

  /// The number of leading zero bits.
  public var leadingZeroBitCount: Int {
    var count = 0
    for word in [word0, word1, word2, word3] {
      count += word.leadingZeroBitCount
      if word != 0 { break }
    }
    return count
  }
}

extension Digest: Comparable {
  @inlinable public static func < (left: Digest, right: Digest) -> Bool {
    if left.word0 != right.word0 { return left.word0 < right.word0 }
    if left.word1 != right.word1 { return left.word1 < right.word1 }
    if left.word2 != right.word2 { return left.word2 < right.word2 }
    return left.word3 < right.word3
  }
}

extension Digest: CustomStringConvertible, LosslessStringConvertible {
  /// Creates a digest from 64 lowercase hexadecimal digits; nil for any other text.
  public init?(_ description: String) { self.init(hex: description) }

  /// Creates a digest from 64 lowercase hexadecimal digits; nil for any other text.
  ///
  /// Upper case is refused, so that each digest has a single text form.
  public init?(hex: some StringProtocol) {
    guard let bytes = Hex.decode(String(hex)), let digest = Digest(bytes) else { return nil }
    self = digest
  }

  /// Creates a digest from the bytes of 64 lowercase hexadecimal digits; nil for any other bytes.
  /// Listings have thousands of names, so nothing is allocated.
  public init?(digits: Span<UInt8>) {
    guard digits.count == 2 * Self.byteCount, let word0 = Hex.word(digits, 0),
      let word1 = Hex.word(digits, 16), let word2 = Hex.word(digits, 32),
      let word3 = Hex.word(digits, 48)
    else { return nil }
    self.init(word0: word0, word1: word1, word2: word2, word3: word3)
  }

  /// The 64 lowercase hexadecimal digits, as printed by `b2sum -l 256`.
  public var hex: String { Hex.encode(bytes) }

  public var description: String { hex }
}

/// Lowercase hexadecimal digits.
public enum Hex {
  /// Returns the digits of bytes, two for each.
  public static func encode(_ bytes: some Sequence<UInt8>) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(bytes.underestimatedCount * 2)
    for byte in bytes {
      text.append(digit(byte >> 4))
      text.append(digit(byte & 15))
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Returns the bytes of lowercase digits, or nil for other characters or an odd number of digits.
  public static func decode(_ text: String) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.utf8.count / 2)
    var high: UInt8?
    for character in text.utf8 {
      guard let value = value(character) else { return nil }
      if let first = high {
        bytes.append(first << 4 | value)
        high = nil
      } else {
        high = value
      }
    }
    return high == nil ? bytes : nil
  }

  /// Returns the number that 16 digits stand for, or nil for other bytes.
  fileprivate static func word(_ digits: Span<UInt8>, _ start: Int) -> UInt64? {
    var word: UInt64 = 0
    for index in start..<(start + 16) {
      guard let value = value(digits[index]) else { return nil }
      word = word << 4 | UInt64(value)
    }
    return word
  }

  private static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }

  private static func value(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    default: nil
    }
  }
}

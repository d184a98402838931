/// Bech32 (BIP 173) without a length limit, as the age specification uses it for identities and
/// recipients ("Conventions used in this document").
///
/// Data and text are in `SecretBytes`, because both may be an identity.
struct Bech32: ~Copyable {
  /// The human-readable part in the case of the text.
  let prefix: String
  /// The data without checksum.
  let data: SecretBytes

  private static let alphabet = Array("qpzry9x8gf2tvdw0s3jn54khce6mua7l".utf8)
  private static let checksumCount = 6

  /// Decodes a text.
  ///
  /// - Throws: `key` for mixed case, characters outside the alphabet, a wrong checksum, or bits
  ///   that do not form whole bytes.
  init(_ text: Span<UInt8>) throws(AgeError) {
    guard let separator = text.indices.last(where: { text[$0] == UInt8(ascii: "1") }),
      separator > 0, text.count - separator - 1 >= Self.checksumCount
    else { throw AgeError(.key, "it is not Bech32 text") }
    try Self.checkCase(text)
    let name = text.indices.prefix(separator).map { text[$0] }
    var checksum = Checksum(name.map(Self.lower))
    let values = (separator + 1)..<text.count
    for index in values {
      guard let value = Self.alphabet.firstIndex(of: Self.lower(text[index])) else {
        throw AgeError(.key, "character \(index + 1) is not one of Bech32")
      }
      checksum.add(UInt8(value))
    }
    guard checksum.isValid else {
      throw AgeError(.key, "its checksum is wrong: a character is missing or misspelled")
    }
    let octets = try Self.octets(text, in: values.dropLast(Self.checksumCount))
    prefix = String(decoding: name, as: UTF8.self)
    data = octets
  }

  /// Refuses mixed case and bytes that are not printable ASCII.
  private static func checkCase(_ text: Span<UInt8>) throws(AgeError) {
    var (hasUpper, hasLower) = (false, false)
    for index in text.indices {
      guard 0x21...0x7E ~= text[index] else { throw AgeError(.key, "it is not Bech32 text") }
      if lower(text[index]) != text[index] { hasUpper = true }
      if upper(text[index]) != text[index] { hasLower = true }
    }
    guard !(hasUpper && hasLower) else {
      throw AgeError(.key, "it has upper and lower case letters")
    }
  }

  /// Returns the bytes of characters of five bits each. Up to four bits remain, which must be zero.
  private static func octets(_ text: Span<UInt8>, in range: Range<Int>) throws(AgeError)
    -> SecretBytes
  {
    var (pending, bits, written) = (UInt32(0), 0, 0)
    let bytes = unsafe SecretBytes(count: range.count * 5 / 8, locked: true) { target in
      for index in range {
        let value = alphabet.firstIndex(of: lower(text[index])) ?? 0
        pending = (pending << 5 | UInt32(value)) & 0xFFF
        bits += 5
        guard bits >= 8 else { continue }
        bits -= 8
        unsafe target[written] = UInt8(truncatingIfNeeded: pending >> bits)
        written += 1
      }
    }
    guard bits < 5, pending & ((1 << bits) - 1) == 0 else {
      throw AgeError(.key, "its data is not a whole number of bytes")
    }
    return bytes
  }

  /// Returns the text of data with a prefix, in upper case if the prefix is.
  static func encode(_ data: Span<UInt8>, prefix: String) -> SecretBytes {
    let name = Array(prefix.utf8)
    let isUpper = name.contains { lower($0) != $0 }
    var checksum = Checksum(name.map(lower))
    let values = (data.count * 8 + 4) / 5
    let count = name.count + 1 + values + checksumCount
    return unsafe SecretBytes(count: count, locked: true) { target in
      var index = 0
      func put(_ byte: UInt8) {
        unsafe target[index] = isUpper ? upper(byte) : byte
        index += 1
      }
      name.forEach(put)
      put(UInt8(ascii: "1"))
      for number in 0..<values {
        let value = fiveBits(of: data, at: number)
        checksum.add(value)
        put(alphabet[Int(value)])
      }
      for value in checksum.values { put(alphabet[Int(value)]) }
    }
  }

  /// Returns the n-th five bits of data, followed by zeros.
  private static func fiveBits(of data: Span<UInt8>, at number: Int) -> UInt8 {
    let (byte, bit) = (number * 5 / 8, number * 5 % 8)
    let next = byte + 1 < data.count ? data[byte + 1] : 0
    let both = UInt16(data[byte]) << 8 | UInt16(next)
    return UInt8(truncatingIfNeeded: both >> (11 - bit)) & 31
  }

  private static func lower(_ byte: UInt8) -> UInt8 {
    UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte + 32 : byte
  }

  private static func upper(_ byte: UInt8) -> UInt8 {
    UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte ? byte - 32 : byte
  }

  /// The checksum of BIP 173, always computed over the lower-case text.
  private struct Checksum {
    private var state: UInt32 = 1

    init(_ prefix: [UInt8]) {
      for byte in prefix { add(byte >> 5) }
      add(0)
      for byte in prefix { add(byte & 31) }
    }

    mutating func add(_ value: UInt8) {
      let top = state >> 25
      state = (state & 0x1FF_FFFF) << 5 ^ UInt32(value)
      let generator: [UInt32] = [
        0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3,
      ]
      for (bit, term) in generator.enumerated() where top >> bit & 1 == 1 { state ^= term }
    }

    /// Whether the values with their checksum are valid.
    var isValid: Bool { state == 1 }

    /// The six values of the checksum.
    var values: [UInt8] {
      var last = self
      for _ in 0..<Bech32.checksumCount { last.add(0) }
      let state = last.state ^ 1
      return (0..<Bech32.checksumCount).map {
        UInt8(truncatingIfNeeded: state >> (25 - 5 * $0)) & 31
      }
    }
  }
}

/// Base64 (RFC 4648, section 4) as property lists have it: white space anywhere.
enum Base64 {
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  private static let padding = UInt8(ascii: "=")

  /// The bytes, or nil for a character that is none of base64's or a length that cannot be.
  static func decode(_ text: [UInt8]) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count / 4 * 3)
    var (pending, count, pads) = (UInt32(0), 0, 0)
    for byte in text where !XMLPropertyListReader.isSpace(byte) {
      if byte == padding {
        pads += 1
        continue
      }
      guard pads == 0, let value = value(of: byte) else { return nil }
      pending = pending << 6 | value
      count += 1
      if count == 4 {
        bytes.append(contentsOf: [
          UInt8(truncatingIfNeeded: pending >> 16), UInt8(truncatingIfNeeded: pending >> 8),
          UInt8(truncatingIfNeeded: pending),
        ])
        (pending, count) = (0, 0)
      }
    }
    switch (count, pads) {
    case (0, 0): break
    case (2, 2): bytes.append(UInt8(truncatingIfNeeded: pending >> 4))
    case (3, 1):
      bytes.append(UInt8(truncatingIfNeeded: pending >> 10))
      bytes.append(UInt8(truncatingIfNeeded: pending >> 2))
    default: return nil
    }
    return bytes
  }

  private static func value(of byte: UInt8) -> UInt32? {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(byte - 65)
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(byte - 97 + 26)
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte - 48 + 52)
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }

  /// The text, padded, without line breaks.
  static func encode(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count + 2) / 3 * 4)
    var rest = bytes
    while !rest.isEmpty {
      let group = Array(rest.prefix(3))
      rest = rest.dropFirst(3)
      let bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << (8 * UInt32(3 - group.count))
      for place in 0..<4 {
        let index = Int(bits >> (18 - 6 * UInt32(place)) & 63)
        text.append(place <= group.count ? alphabet[index] : padding)
      }
    }
    return text
  }
}

/// Base64 (RFC 4648, section 4): with padding for bytes that are not UTF-8 in JSON, property lists
/// and the armor of age files, without padding for the header of age files.
public enum Base64 {
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  private static let padding = UInt8(ascii: "=")

  /// Returns the text of bytes.
  public static func encode(_ bytes: some Sequence<UInt8>, padded: Bool = true) -> String {
    var text: [UInt8] = []
    var pending: UInt32 = 0
    var bits: UInt32 = 0
    for byte in bytes {
      pending = pending << 8 | UInt32(byte)
      bits += 8
      while bits >= 6 {
        bits -= 6
        text.append(alphabet[Int(pending >> bits & 63)])
      }
    }
    if bits > 0 { text.append(alphabet[Int(pending << (6 - bits) & 63)]) }
    while padded && text.count % 4 != 0 { text.append(padding) }
    return String(decoding: text, as: UTF8.self)
  }

  /// Returns the bytes of a text, or nil if it is not in the form that `encode(_:padded:)` writes.
  /// With `strayBits`, unused bits of the last character may be set, as some encoders leave them.
  public static func decode(
    _ text: some Collection<UInt8>, padded: Bool = true, strayBits: Bool = false
  ) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count / 4 * 3 + 3)
    var (pending, bits, pads) = (UInt32(0), UInt32(0), 0)
    for character in text {
      if character == padding {
        pads += 1
        continue
      }
      guard pads == 0, let value = value(character) else { return nil }
      pending = pending << 6 | value
      bits += 6
      if bits >= 8 {
        bits -= 8
        bytes.append(UInt8(truncatingIfNeeded: pending >> bits))
        pending &= (1 << bits) - 1
      }
    }
    // A single character leaves 6 bits, which are not a byte; two leave 4 bits, and three leave 2.
    guard bits < 6, pads == (padded ? Int(bits) / 2 : 0) else { return nil }
    return pending == 0 || strayBits ? bytes : nil
  }

  private static func value(_ character: UInt8) -> UInt32? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - UInt8(ascii: "a")) + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - UInt8(ascii: "0")) + 52
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }
}

extension Digest: CustomStringConvertible, LosslessStringConvertible {
  /// Creates a digest from 64 lowercase hexadecimal digits; nil for any other text.
  package init?(_ description: String) { self.init(hex: description) }

  /// Creates a digest from 64 lowercase hexadecimal digits; nil for any other text.
  ///
  /// Upper case is refused, so that each digest has a single text form.
  package init?(hex: some StringProtocol) {
    guard let bytes = Hex.decode(String(hex)), let digest = Digest(bytes) else { return nil }
    self = digest
  }

  /// The 64 lowercase hexadecimal digits, as printed by `b2sum -l 256`.
  package var hex: String { Hex.encode(bytes) }

  package var description: String { hex }
}

/// Lowercase hexadecimal digits.
package enum Hex {
  /// Returns the digits of bytes, two for each.
  package static func encode(_ bytes: some Sequence<UInt8>) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(bytes.underestimatedCount * 2)
    for byte in bytes {
      text.append(digit(byte >> 4))
      text.append(digit(byte & 15))
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Returns the bytes of lowercase digits, or nil for other characters or an odd number of digits.
  package static func decode(_ text: String) -> [UInt8]? {
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

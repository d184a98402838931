/// Bytes as base64 (RFC 4648, section 4) with padding.
enum Base64 {
  private static let digits = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  static func encode(_ bytes: some RandomAccessCollection<UInt8>) -> String {
    var text: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes.dropFirst(start).prefix(3)
      var bits = group.reduce(0) { $0 << 8 | Int($1) }
      bits <<= 8 * (3 - group.count)
      for place in 0..<4 {
        text.append(
          place <= group.count ? digits[bits >> (18 - 6 * place) & 63] : UInt8(ascii: "="))
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Nothing for a text that `encode` does not make.
  static func decode(_ text: String) -> [UInt8]? {
    let characters = Array(text.utf8)
    guard characters.count.isMultiple(of: 4) else { return nil }
    let padding = characters.reversed().prefix { $0 == UInt8(ascii: "=") }.count
    guard padding <= 2 else { return nil }
    var bytes: [UInt8] = []
    var bits = 0
    for (place, character) in characters.dropLast(padding).enumerated() {
      guard let value = digits.firstIndex(of: character) else { return nil }
      bits = (bits << 6 | value) & 0xffffff
      if place % 4 > 0 { bytes.append(UInt8(truncatingIfNeeded: bits >> (6 - 2 * (place % 4)))) }
    }
    return encode(bytes) == text ? bytes : nil
  }
}

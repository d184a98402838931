internal import Codecs
internal import SystemIO

extension XMLPropertyListReader {
  /// Returns the value for an element's text.
  func scalar(_ element: Element, text: [UInt8], at start: Int) throws(ModelError) -> PropertyList {
    switch element {
    case .string: return .string(ByteString(text))
    case .integer: if let value = Self.integer(Self.trimmed(text)) { return value }
    case .real: if let value = Self.real(Self.trimmed(text)) { return .real(value) }
    case .date:
      if let value = PropertyListDate.seconds(of: Self.trimmed(text)) { return .date(value) }
    case .data:
      let letters = text.filter { !Self.isSpace($0) }
      if let value = Base64.decode(letters, strayBits: true) { return .data(value) }
    default: break
    }
    let shown = ByteString(text.prefix(40))
    throw failure("'\(shown)' is not a valid <\(element.rawValue)>", at: start)
  }

  private static func trimmed(_ text: [UInt8]) -> ArraySlice<UInt8> {
    var rest = text.drop { isSpace($0) }
    while let last = rest.last, isSpace(last) { rest.removeLast() }
    return rest
  }

  /// Parses an optional sign and decimal digits, or `0x` and hexadecimal digits.
  private static func integer(_ text: ArraySlice<UInt8>) -> PropertyList? {
    var digits = text
    let isNegative = digits.first == UInt8(ascii: "-")
    if isNegative || digits.first == UInt8(ascii: "+") {
      digits = digits.dropFirst().drop { isSpace($0) }
    }
    let isHex = digits.starts(with: "0x".utf8) || digits.starts(with: "0X".utf8)
    if isHex { digits = digits.dropFirst(2) }
    guard let first = digits.first, first != UInt8(ascii: "+"), first != UInt8(ascii: "-"),
      let size = UInt64(String(decoding: digits, as: UTF8.self), radix: isHex ? 16 : 10)
    else { return nil }
    if isNegative {
      guard size <= UInt64(Int64.max) + 1 else { return nil }
      return .integer(Int64(truncatingIfNeeded: 0 &- size))
    }
    return size <= UInt64(Int64.max) ? .integer(Int64(size)) : .unsigned(size)
  }

  private static func real(_ text: ArraySlice<UInt8>) -> Double? {
    let string = String(decoding: text, as: UTF8.self)
    let words = ["nan", "inf", "infinity", "+inf", "+infinity", "-inf", "-infinity"]
    let isNumber = string.utf8.allSatisfy { byte in
      (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "+-.eE".utf8.contains(byte)
    }
    guard isNumber || words.contains(string.lowercased()) else { return nil }
    return Double(string)
  }
}

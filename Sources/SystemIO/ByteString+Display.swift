extension ByteString: CustomStringConvertible {
  /// The name for display: control characters, bidirectional marks, backslashes and bytes that are
  /// not UTF-8 are escaped (`\n`, `\u{202e}`, `\\`, `\xff`). A name can neither break a line of
  /// output nor look like another name.
  package var description: String {
    if bytes.allSatisfy(Self.isPlain) { return String(decoding: bytes, as: UTF8.self) }
    var shown: [UInt8] = []
    appendShown(to: &shown)
    return String(decoding: shown, as: UTF8.self)
  }

  /// Appends the UTF-8 of `description`. Bytes that need no escape are copied unchanged.
  package func appendShown(to buffer: inout [UInt8]) {
    var rest = bytes
    while !rest.isEmpty {
      let plain = rest.prefix(while: Self.isPlain)
      buffer.append(contentsOf: plain)
      rest = rest[plain.endIndex...]
      guard let first = rest.first else { return }
      if let (scalar, length) = Self.firstScalar(of: rest) {
        buffer.append(contentsOf: Self.shown(scalar).utf8)
        rest = rest.dropFirst(length)
      } else {
        buffer.append(contentsOf: ("\\x" + Self.hex(first)).utf8)
        rest = rest.dropFirst()
      }
    }
  }

  /// Whether a byte is a printable ASCII character other than the backslash.
  private static func isPlain(_ byte: UInt8) -> Bool {
    (0x20...0x7e).contains(byte) && byte != UInt8(ascii: "\\")
  }

  /// Returns the first scalar and its length in bytes, or nil if the bytes are empty or do not
  /// begin with valid UTF-8.
  package static func firstScalar(of bytes: ArraySlice<UInt8>) -> (Unicode.Scalar, Int)? {
    guard let first = bytes.first else { return nil }
    if first < 0x80 { return (Unicode.Scalar(first), 1) }
    let length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2
    guard bytes.count >= length,
      let text = String(validating: bytes.prefix(length), as: UTF8.self),
      let scalar = text.unicodeScalars.first
    else { return nil }
    return (scalar, length)
  }

  private static func shown(_ scalar: Unicode.Scalar) -> String {
    switch scalar {
    case "\n": return "\\n"
    case "\t": return "\\t"
    case "\r": return "\\r"
    case "\\": return "\\\\"
    default: break
    }
    switch scalar.properties.generalCategory {
    case .control where scalar.value < 0x80: return "\\x" + hex(UInt8(scalar.value))
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned:
      return "\\u{" + String(scalar.value, radix: 16) + "}"
    default: return String(scalar)
    }
  }

  private static func hex(_ byte: UInt8) -> String {
    (byte < 16 ? "0" : "") + String(byte, radix: 16)
  }
}

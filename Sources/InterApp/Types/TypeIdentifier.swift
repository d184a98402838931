package import SystemIO

/// A uniform type identifier: `public.png`, `com.example.notes.document`. Identifiers that differ
/// only in the case of ASCII letters are equal (Apple, Uniform Type Identifiers Overview, "The
/// Uniform Type Identifier character set").
package struct TypeIdentifier: Sendable {
  /// The identifier as written.
  package let bytes: ByteString
  /// The identifier with ASCII letters in lower case, for comparisons.
  package let key: ByteString

  /// The maximum length in bytes: that of a domain name (RFC 1035, section 2.3.4).
  static let maximumLength = 255

  /// Creates an identifier, or returns nil if `fault(of:)` returns a reason.
  package init?(_ bytes: ByteString) {
    guard Self.fault(of: bytes) == nil else { return nil }
    self.bytes = bytes
    key = bytes.lowercasedASCII
  }

  /// Creates an identifier that is known to be valid, of this program's own text.
  init(known text: StaticString) {
    bytes = ByteString("\(text)")
    key = bytes.lowercasedASCII
  }

  /// Returns the reason why bytes are not an identifier, or nil if they are: at least two
  /// components of letters, digits, hyphens and characters above U+007F, separated by dots.
  package static func fault(of bytes: ByteString) -> String? {
    if isPlain(bytes) { return nil }
    if bytes.isEmpty { return "it is empty" }
    if bytes.count > maximumLength {
      return "it has \(bytes.count) bytes, more than the limit of \(maximumLength)"
    }
    guard bytes.utf8 != nil else { return "it is not UTF-8" }
    let isDot = { (byte: UInt8) in byte == UInt8(ascii: ".") }
    let parts = bytes.bytes.split(omittingEmptySubsequences: false, whereSeparator: isDot)
    if parts.count < 2 { return "it is not in reverse-DNS form: it has no dot" }
    if parts.contains(where: \.isEmpty) { return "it has an empty component" }
    guard let wrong = bytes.bytes.first(where: { !isDot($0) && !isAllowed($0) }) else { return nil }
    return "it contains '\(ByteString([wrong]))', and only letters, digits, '-' and '.' are allowed"
  }

  /// Whether bytes are an identifier of ASCII characters, as those of the system are. This takes a
  /// fraction of the time of the search for a reason.
  private static func isPlain(_ bytes: ByteString) -> Bool {
    if bytes.count > maximumLength { return false }
    var (dots, length) = (0, 0)
    for byte in bytes.bytes {
      if byte == UInt8(ascii: ".") {
        if length == 0 { return false }
        (dots, length) = (dots + 1, 0)
      } else if byte < 0x80, isAllowed(byte) {
        length += 1
      } else {
        return false
      }
    }
    return dots > 0 && length > 0
  }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    byte.isASCIIAlphanumeric || byte == UInt8(ascii: "-") || byte >= 0x80
  }

  /// The reason why an app should not use the identifier although it is valid, or nil: an invisible
  /// character makes it another identifier than the one that it looks like.
  var oddity: String? {
    guard let text = bytes.utf8 else { return nil }
    let hidden = text.unicodeScalars.first { scalar in
      switch scalar.properties.generalCategory {
      case .format, .control, .spaceSeparator, .lineSeparator, .paragraphSeparator, .privateUse:
        true
      default: false
      }
    }
    return hidden.map { scalar in
      "it contains the invisible character U+\(String(scalar.value, radix: 16, uppercase: true))"
    }
  }

  /// Whether only the system may declare the identifier: `public` is Apple's domain for all, and
  /// `dyn` that of identifiers made for unknown extensions.
  var isReserved: Bool {
    ["public.", "dyn."].contains { key.bytes.starts(with: $0.utf8) }
  }
}

extension TypeIdentifier: Hashable, Comparable, CustomStringConvertible {
  package static func == (left: Self, right: Self) -> Bool { left.key == right.key }
  package func hash(into hasher: inout Hasher) { hasher.combine(key) }
  package static func < (left: Self, right: Self) -> Bool { left.key < right.key }
  /// The identifier for output, with escapes for unprintable characters.
  package var description: String { bytes.description }
}

extension ByteString {
  /// The bytes with ASCII letters in lower case.
  package var lowercasedASCII: ByteString {
    bytes.contains(where: { (0x41...0x5a).contains($0) })
      ? ByteString(bytes.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 }) : self
  }
}

extension UInt8 {
  /// Whether the byte is an ASCII letter.
  var isASCIILetter: Bool { (0x41...0x5a).contains(self) || (0x61...0x7a).contains(self) }
  /// Whether the byte is an ASCII digit.
  var isASCIIDigit: Bool { (0x30...0x39).contains(self) }
  /// Whether the byte is an ASCII letter or digit.
  var isASCIIAlphanumeric: Bool { isASCIILetter || isASCIIDigit }
  /// Whether the byte is a hexadecimal digit.
  var isHexDigit: Bool { hexValue != nil }
  /// The value of a hexadecimal digit, or nil.
  var hexValue: UInt8? {
    switch self {
    case 0x30...0x39: self - 0x30
    case 0x41...0x46: self - 0x41 + 10
    case 0x61...0x66: self - 0x61 + 10
    default: nil
    }
  }
}

internal import Codecs
internal import SystemIO

/// The keys of a strings file (`InfoPlist.strings`): a property list, or pairs of strings
/// `"key" = "value";` with comments (Resource Programming Guide, "String Resources").
enum StringsFile {
  /// The maximum size of a file in bytes.
  static let limit = 1 << 20

  /// Returns the keys, or nil if the bytes are neither a property list nor valid pairs.
  static func keys(_ bytes: [UInt8]) -> Set<ByteString>? {
    if let list = try? PropertyList(reading: bytes, limits: .init(bytes: limit)) {
      return list.dictionaryValue.map { Set($0.map { ByteString($0.key) }) }
    }
    guard let text = text(bytes) else { return nil }
    var parser = Parser(rest: Array(text.utf8)[...])
    return parser.keys()
  }

  /// Returns the text of a file in UTF-8, or in UTF-16 with a byte order mark.
  private static func text(_ bytes: [UInt8]) -> String? {
    if bytes.starts(with: [0xff, 0xfe]) { return utf16(bytes, high: 1) }
    if bytes.starts(with: [0xfe, 0xff]) { return utf16(bytes, high: 0) }
    let body = bytes.starts(with: [0xef, 0xbb, 0xbf]) ? bytes.dropFirst(3) : bytes[...]
    return String(validating: body, as: UTF8.self)
  }

  private static func utf16(_ bytes: [UInt8], high: Int) -> String? {
    let units = stride(from: 2, to: bytes.count - 1, by: 2).map { index in
      UInt16(bytes[index + high]) << 8 | UInt16(bytes[index + 1 - high])
    }
    return bytes.count % 2 == 0 ? String(validating: units, as: UTF16.self) : nil
  }

  private struct Parser {
    var rest: ArraySlice<UInt8>

    mutating func keys() -> Set<ByteString>? {
      var keys: Set<ByteString> = []
      while true {
        guard skipBlanks() else { return nil }
        if rest.isEmpty { return keys }
        guard let key = word(), skipBlanks(), drop("="), skipBlanks(), word() != nil,
          skipBlanks(), drop(";")
        else { return nil }
        keys.insert(key)
      }
    }

    private mutating func drop(_ byte: Unicode.Scalar) -> Bool {
      guard rest.first == UInt8(ascii: byte) else { return false }
      rest = rest.dropFirst()
      return true
    }

    /// Skips white space and comments. Returns false for a comment without an end.
    private mutating func skipBlanks() -> Bool {
      while let first = rest.first {
        if first <= 0x20 {
          rest = rest.dropFirst()
        } else if rest.starts(with: Array("//".utf8)) {
          rest = rest.drop { $0 != 0x0a }
        } else if rest.starts(with: Array("/*".utf8)) {
          guard skipComment() else { return false }
        } else {
          return true
        }
      }
      return true
    }

    private mutating func skipComment() -> Bool {
      rest = rest.dropFirst(2)
      while let star = rest.firstIndex(of: UInt8(ascii: "*")) {
        rest = rest[(star + 1)...]
        if drop("/") { return true }
      }
      return false
    }

    /// Returns a quoted string, with escapes as written, or a word of letters, digits, `_`, `.`,
    /// `-`.
    private mutating func word() -> ByteString? {
      guard drop("\"") else {
        let word = rest.prefix { byte in
          byte.isASCIIAlphanumeric || "_.-".utf8.contains(byte)
        }
        rest = rest[word.endIndex...]
        return word.isEmpty ? nil : ByteString(word)
      }
      var text: [UInt8] = []
      while let byte = rest.popFirst() {
        if byte == UInt8(ascii: "\"") { return ByteString(text) }
        text.append(byte)
        if byte == UInt8(ascii: "\\"), let next = rest.popFirst() { text.append(next) }
      }
      return nil
    }
  }
}

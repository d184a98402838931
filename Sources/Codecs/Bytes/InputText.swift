/// Text of the input: validated, shown in messages, compared.
enum InputText {
  /// Returns the offset of the first byte that is not valid UTF-8 (RFC 3629: no overlong forms, no
  /// surrogates, nothing above U+10FFFF), or nil if all bytes are valid.
  static func firstInvalid(_ bytes: Span<UInt8>) -> Int? {
    do {
      _ = try UTF8Span(validating: bytes)
      return nil
    } catch {
      return error.byteOffsets.lowerBound
    }
  }

  /// Returns the text of bytes, or nil if they are not valid UTF-8.
  static func string(_ bytes: Span<UInt8>) -> String? {
    do {
      return String(copying: try UTF8Span(validating: bytes))
    } catch {
      return nil
    }
  }

  /// Returns at most 40 characters, with everything except printable ASCII and letters escaped.
  static func printable(_ string: String) -> String {
    var text = ""
    for scalar in string.unicodeScalars.prefix(40) {
      if scalar.isASCII || scalar.properties.isAlphabetic {
        text +=
          scalar.value < 0x20 || scalar.value == 0x7F
          ? scalar.escaped(asASCII: true) : String(scalar)
      } else {
        text += scalar.escaped(asASCII: true)
      }
    }
    return string.unicodeScalars.dropFirst(40).isEmpty ? text : text + "…"
  }

  /// A set of member names, compared by their UTF-8. Small sets need no hash table.
  struct NameSet {
    private var few: [String] = []
    private var many: Set<[UInt8]> = []

    /// Inserts a name. Returns whether it was new.
    mutating func insert(_ name: String) -> Bool {
      if !many.isEmpty { return many.insert(Array(name.utf8)).inserted }
      if few.contains(where: { $0.utf8.elementsEqual(name.utf8) }) { return false }
      few.append(name)
      if few.count > 8 { many = Set(few.map { Array($0.utf8) }) }
      return true
    }
  }
}

extension UInt8 {
  /// Whether the byte is white space in XML and key files: a space, tab, newline or return.
  var isSpace: Bool { self == 0x20 || self == 0x0a || self == 0x09 || self == 0x0d }
}

extension ArraySlice<UInt8> {
  /// The bytes without white space (spaces, tabs, newlines, returns) at both ends.
  public var trimmed: ArraySlice<UInt8> {
    var rest = drop { $0.isSpace }
    while let last = rest.last, last.isSpace { rest.removeLast() }
    return rest
  }
}

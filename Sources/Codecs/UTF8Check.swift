/// Validates UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.
enum UTF8Check {
  /// Returns the offset of the first byte that is not valid UTF-8, or nil if all bytes are valid.
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
}

extension UInt8 {
  /// Whether the byte is white space in XML and key files: a space, tab, newline or return.
  var isSpace: Bool { self == 0x20 || self == 0x0a || self == 0x09 || self == 0x0d }
}

extension ArraySlice<UInt8> {
  /// The bytes without white space (spaces, tabs, newlines, returns) at both ends.
  package var trimmed: ArraySlice<UInt8> {
    var rest = drop { $0.isSpace }
    while let last = rest.last, last.isSpace { rest.removeLast() }
    return rest
  }
}

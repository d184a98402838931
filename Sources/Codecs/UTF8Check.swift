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

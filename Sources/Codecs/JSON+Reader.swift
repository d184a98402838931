extension JSON {
  /// The limits of a JSON text.
  package struct Limits: Sendable {
    /// The maximum number of bytes.
    package var bytes: Int
    /// The maximum nesting of arrays and objects.
    package var depth: Int
    /// The maximum number of values. The smallest take two bytes of text and 24 of memory.
    package var values: Int

    /// Creates limits: by default 64 MiB, 128 levels and 2,097,152 values.
    package init(bytes: Int = 64 << 20, depth: Int = 128, values: Int = 1 << 21) {
      self.bytes = bytes
      self.depth = depth
      self.values = values
    }
  }

  /// Parses one JSON text, strictly by RFC 8259.
  ///
  /// Refused, with line and column: bytes that are not UTF-8, a byte order mark, duplicate names in
  /// an object, lone surrogates, integers that exceed 64 bits, numbers that exceed a double, and
  /// data after the value.
  ///
  /// - Parameter wanted: the members of the outermost object to keep; others are only validated and
  ///   take no memory. Nil keeps all.
  package init(
    parsing text: [UInt8], limits: Limits = Limits(), keeping wanted: Set<String>? = nil
  ) throws(CodecError) {
    guard text.count <= limits.bytes else {
      throw CodecError(.limit, in: .json, reason: "it has more than \(limits.bytes) bytes")
    }
    if let invalid = UTF8Check.firstInvalid(text.span) {
      throw CodecError(
        .malformed, in: .json, reason: "not valid UTF-8",
        at: .mark(Mark(of: invalid, in: text.span)))
    }
    var reader = JSONReader(text: text, limits: limits, wanted: wanted)
    self = try reader.document()
  }

  /// Parses one JSON text, strictly by RFC 8259.
  package init(parsing text: String, limits: Limits = Limits()) throws(CodecError) {
    try self.init(parsing: Array(text.utf8), limits: limits)
  }
}

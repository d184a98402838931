extension JSON {
  /// What a JSON text may be at most.
  public struct Limits: Sendable {
    /// Bytes of the whole text.
    public var bytes: Int
    /// How deeply arrays and objects may lie in one another.
    public var depth: Int
    /// How many values there may be in all: the smallest take two bytes of text and 24 of memory.
    public var values: Int

    /// Makes limits; 64 MiB, 128 levels and 2,097,152 values unless others are given.
    public init(bytes: Int = 64 << 20, depth: Int = 128, values: Int = 1 << 21) {
      self.bytes = bytes
      self.depth = depth
      self.values = values
    }
  }

  /// Reads one JSON text, strictly by RFC 8259.
  ///
  /// Refused, with line and column: bytes that are not UTF-8, a byte order mark, a name that comes
  /// twice in an object, a lone surrogate, a number beyond 64 bits or a double, anything behind the
  /// value.
  ///
  /// - Parameter wanted: the members of the outermost object that are kept; of the others only the
  ///   form is looked at, and they take no memory. Nothing for all.
  public init(
    parsing text: [UInt8], limits: Limits = Limits(), keeping wanted: Set<String>? = nil
  ) throws(CodecError) {
    guard text.count <= limits.bytes else {
      throw CodecError(.limit, .json, "it has more than \(limits.bytes) bytes")
    }
    if let invalid = UTF8Check.firstInvalid(text.span) {
      throw CodecError(
        .malformed, .json, "not valid UTF-8", at: .mark(Mark(of: invalid, in: text.span)))
    }
    var reader = JSONReader(text: text, limits: limits, wanted: wanted)
    self = try reader.document()
  }

  /// Reads one JSON text, strictly by RFC 8259.
  public init(parsing text: String, limits: Limits = Limits()) throws(CodecError) {
    try self.init(parsing: Array(text.utf8), limits: limits)
  }
}

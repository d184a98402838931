extension JSON {
  /// The limits of a JSON text.
  public struct Limits: Sendable {
    /// The maximum number of bytes.
    public var bytes: Int
    /// The maximum nesting of arrays and objects.
    public var depth: Int
    /// The maximum number of values. The smallest take two bytes of text and 24 of memory.
    public var values: Int

    /// Creates limits: by default 64 MiB, 128 levels and 2,097,152 values.
    public init(bytes: Int = 64 << 20, depth: Int = 128, values: Int = 1 << 21) {
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
  public init(
    parsing text: [UInt8], limits: Limits = Limits(), keeping wanted: Set<String>? = nil
  ) throws(CodecError) {
    guard text.count <= limits.bytes else {
      throw CodecError(.limit, in: .json, reason: "it has more than \(limits.bytes) bytes")
    }
    if let invalid = InputText.firstInvalid(text.span) {
      throw CodecError(
        .malformed, in: .json, reason: "not valid UTF-8",
        at: .mark(Mark(of: invalid, in: text.span)))
    }
    var reader = Reader(text: text, limits: limits, wanted: wanted)
    self = try reader.document()
  }

  /// Parses one JSON text, strictly by RFC 8259.
  public init(parsing text: String, limits: Limits = Limits()) throws(CodecError) {
    try self.init(parsing: Array(text.utf8), limits: limits)
  }
}

extension JSON {
  /// Parses one JSON text that is valid UTF-8.
  struct Reader {
    let text: [UInt8]
    private let limits: JSON.Limits
    /// The members of the outermost object to keep, or nil to keep all.
    private let wanted: Set<String>?
    var position = 0
    private var depth = 0
    private var values = 0
    /// Whether the current value is validated but not kept.
    private(set) var isSkipping = false

    init(text: [UInt8], limits: JSON.Limits, wanted: Set<String>? = nil) {
      (self.text, self.limits, self.wanted) = (text, limits, wanted)
    }

    /// The byte at the current position, or nil at the end.
    var next: UInt8? { position < text.count ? text[position] : nil }

    mutating func document() throws(CodecError) -> JSON {
      let value = try self.value()
      skipSpace()
      if position < text.count { throw failure("data follows the value") }
      return value
    }

    private mutating func value() throws(CodecError) -> JSON {
      skipSpace()
      values += 1
      guard values <= limits.values else {
        throw failure("more than \(limits.values) values", .limit)
      }
      switch next {
      case UInt8(ascii: "{"):
        return try nested { (reader) throws(CodecError) in try reader.object() }
      case UInt8(ascii: "["):
        return try nested { (reader) throws(CodecError) in try reader.array() }
      case UInt8(ascii: "\""): return .string(try string())
      case UInt8(ascii: "t"): return try word("true", .bool(true))
      case UInt8(ascii: "f"): return try word("false", .bool(false))
      case UInt8(ascii: "n"): return try word("null", .null)
      default: return try number()
      }
    }

    private mutating func nested(
      _ body: (inout JSON.Reader) throws(CodecError) -> JSON
    ) throws(CodecError) -> JSON {
      guard depth < limits.depth else {
        throw failure("more than \(limits.depth) levels deep", .limit)
      }
      depth += 1
      position += 1
      let value = try body(&self)
      depth -= 1
      return value
    }

    private mutating func array() throws(CodecError) -> JSON {
      var elements: [JSON] = []
      skipSpace()
      if consume("]") { return .array(elements) }
      repeat {
        let element = try value()
        if !isSkipping { elements.append(element) }
        skipSpace()
      } while consume(",")
      guard consume("]") else { throw failure("',' or ']' is expected") }
      return .array(elements)
    }

    private mutating func object() throws(CodecError) -> JSON {
      var members: [JSON.Member] = []
      var names = InputText.NameSet()
      skipSpace()
      if consume("}") { return .object(members) }
      repeat {
        if let member = try member(&names) { members.append(member) }
        skipSpace()
      } while consume(",")
      guard consume("}") else { throw failure("',' or '}' is expected") }
      return .object(members)
    }

    private mutating func member(_ names: inout InputText.NameSet) throws(CodecError) -> JSON
      .Member?
    {
      skipSpace()
      let start = position
      guard next == UInt8(ascii: "\"") else { throw failure("a quoted name is expected") }
      let name = try string()
      guard isSkipping || names.insert(name) else {
        throw failure("duplicate name '\(InputText.printable(name))'", at: start)
      }
      skipSpace()
      guard consume(":") else { throw failure("':' is expected") }
      if isSkipping {
        _ = try value()
        return nil
      }
      guard depth == 1, let wanted, !wanted.contains(name) else {
        return JSON.Member(name, try value())
      }
      isSkipping = true
      _ = try value()
      isSkipping = false
      return nil
    }

    private mutating func word(_ word: StaticString, _ value: JSON) throws(CodecError) -> JSON {
      for (index, byte) in word.description.utf8.enumerated() {
        guard position + index < text.count, text[position + index] == byte else {
          throw failure("a value is expected")
        }
      }
      position += word.utf8CodeUnitCount
      return value
    }

    private mutating func skipSpace() {
      while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 {
        position += 1
      }
    }

    mutating func consume(_ character: Unicode.Scalar) -> Bool {
      guard next == UInt8(ascii: character) else { return false }
      position += 1
      return true
    }

    /// Returns an error at a position, by default the current one, or about the unexpected end of
    /// the text.
    func failure(
      _ reason: String, _ kind: CodecError.Kind = .malformed, at offset: Int? = nil
    ) -> CodecError {
      let offset = offset ?? position
      let mark = CodecError.Position.mark(Mark(of: offset, in: text.span))
      guard offset < text.count || kind != .malformed else {
        return CodecError(
          .truncated, in: .json, reason: "unexpected end of the text: \(reason)", at: mark)
      }
      return CodecError(kind, in: .json, reason: reason, at: mark)
    }
  }
}

extension JSON.Reader {
  /// Reads a quoted string.
  mutating func string() throws(CodecError) -> String {
    let start = position
    position += 1
    var bytes: [UInt8] = []
    var run = position
    while let byte = next {
      switch byte {
      case UInt8(ascii: "\""):
        if !isSkipping { bytes.append(contentsOf: text[run..<position]) }
        position += 1
        return String(decoding: bytes, as: UTF8.self)
      case UInt8(ascii: "\\"):
        bytes.append(contentsOf: text[run..<position])
        try escape(to: &bytes)
        run = position
      case 0..<0x20: throw failure("a control character in a string must be escaped")
      default: position += 1
      }
    }
    throw CodecError(
      .truncated, in: .json, reason: "the string is not terminated",
      at: .mark(Mark(of: start, in: text.span)))
  }

  private mutating func escape(to bytes: inout [UInt8]) throws(CodecError) {
    let start = position
    position += 1
    guard let letter = next else { throw failure("the string is not terminated") }
    position += 1
    switch letter {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): bytes.append(letter)
    case UInt8(ascii: "b"): bytes.append(0x08)
    case UInt8(ascii: "f"): bytes.append(0x0C)
    case UInt8(ascii: "n"): bytes.append(0x0A)
    case UInt8(ascii: "r"): bytes.append(0x0D)
    case UInt8(ascii: "t"): bytes.append(0x09)
    case UInt8(ascii: "u"): bytes.append(contentsOf: Array(String(try unicode(start)).utf8))
    default: throw failure("an unknown escape in a string", at: start)
    }
  }

  private mutating func unicode(_ start: Int) throws(CodecError) -> Unicode.Scalar {
    let first = try fourDigits()
    var value = UInt32(first)
    if UTF16.isLeadSurrogate(first), consume("\\"), consume("u") {
      let second = try fourDigits()
      guard UTF16.isTrailSurrogate(second) else { throw failure("a lone surrogate", at: start) }
      value = 0x10000 + (UInt32(first) & 0x3FF) << 10 + UInt32(second) & 0x3FF
    }
    guard let scalar = Unicode.Scalar(value) else { throw failure("a lone surrogate", at: start) }
    return scalar
  }

  private mutating func fourDigits() throws(CodecError) -> UInt16 {
    var value: UInt16 = 0
    for _ in 0..<4 {
      guard let byte = next, let digit = Self.hexDigit(byte) else {
        throw failure("four hexadecimal digits are expected")
      }
      value = value << 4 | digit
      position += 1
    }
    return value
  }

  private static func hexDigit(_ byte: UInt8) -> UInt16? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt16(byte - UInt8(ascii: "0"))
    case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt16(byte - UInt8(ascii: "a") + 10)
    case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt16(byte - UInt8(ascii: "A") + 10)
    default: nil
    }
  }

  /// Reads a number: an integer if it has neither fraction nor exponent.
  mutating func number() throws(CodecError) -> JSON {
    guard isDigit || next == UInt8(ascii: "-") else { throw failure("a value is expected") }
    let start = position
    _ = consume("-")
    if !consume("0") {
      try digits()
    } else if isDigit {
      throw failure("a number has a leading zero")
    }
    var isInteger = true
    if consume(".") {
      isInteger = false
      try digits()
    }
    if consume("e") || consume("E") {
      isInteger = false
      if !consume("+") { _ = consume("-") }
      try digits()
    }
    return try number(
      String(decoding: text[start..<position], as: UTF8.self), isInteger: isInteger, at: start)
  }

  private func number(
    _ text: String, isInteger: Bool, at start: Int
  ) throws(CodecError) -> JSON {
    if isInteger, text != "-0" {
      if let value = Int64(text) { return .integer(value) }
      throw failure("an integer exceeds 64 bits", .unsupported, at: start)
    }
    guard let value = Double(text), value.isFinite else {
      throw failure("a number exceeds the range of a double", .unsupported, at: start)
    }
    return .double(value)
  }

  private var isDigit: Bool {
    if let byte = next { UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte } else { false }
  }

  private mutating func digits() throws(CodecError) {
    guard isDigit else { throw failure("a digit is expected") }
    while isDigit { position += 1 }
  }
}

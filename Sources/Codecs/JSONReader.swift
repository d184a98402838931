/// Parses one JSON text that is valid UTF-8.
struct JSONReader {
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
    case UInt8(ascii: "{"): return try nested { (reader) throws(CodecError) in try reader.object() }
    case UInt8(ascii: "["): return try nested { (reader) throws(CodecError) in try reader.array() }
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"): return try word("true", .bool(true))
    case UInt8(ascii: "f"): return try word("false", .bool(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    default: return try number()
    }
  }

  private mutating func nested(
    _ body: (inout JSONReader) throws(CodecError) -> JSON
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
    if take("]") { return .array(elements) }
    repeat {
      let element = try value()
      if !isSkipping { elements.append(element) }
      skipSpace()
    } while take(",")
    guard take("]") else { throw failure("',' or ']' is expected") }
    return .array(elements)
  }

  private mutating func object() throws(CodecError) -> JSON {
    var members: [JSON.Member] = []
    var names = NameSet()
    skipSpace()
    if take("}") { return .object(members) }
    repeat {
      if let member = try member(&names) { members.append(member) }
      skipSpace()
    } while take(",")
    guard take("}") else { throw failure("',' or '}' is expected") }
    return .object(members)
  }

  private mutating func member(_ names: inout NameSet) throws(CodecError) -> JSON.Member? {
    skipSpace()
    let start = position
    guard next == UInt8(ascii: "\"") else { throw failure("a quoted name is expected") }
    let name = try string()
    guard isSkipping || names.insert(name) else {
      throw failure("duplicate name '\(Printable.text(name))'", at: start)
    }
    skipSpace()
    guard take(":") else { throw failure("':' is expected") }
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

  mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard next == UInt8(ascii: character) else { return false }
    position += 1
    return true
  }

  /// Returns an error at a position, by default the current one, or about the unexpected end of the
  /// text.
  func failure(
    _ reason: String, _ kind: CodecError.Kind = .malformed, at place: Int? = nil
  ) -> CodecError {
    let place = place ?? position
    let mark = CodecError.Position.mark(Mark(of: place, in: text.span))
    guard place < text.count || kind != .malformed else {
      return CodecError(
        .truncated, in: .json, reason: "unexpected end of the text: \(reason)", at: mark)
    }
    return CodecError(kind, in: .json, reason: reason, at: mark)
  }
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

/// Formats strings of the input for messages.
enum Printable {
  /// Returns at most 40 characters, with everything except printable ASCII and letters escaped.
  static func text(_ string: String) -> String {
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
}

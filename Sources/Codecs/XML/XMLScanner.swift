/// Scans the markup of XML 1.0 for readers, which decide what elements mean: tags, attributes, text
/// and entities. Comments and processing instructions are skipped.
///
/// Document types, whose entities can expand without bound, and encodings other than UTF-8 are
/// refused.
package struct XMLScanner {
  /// The document without a byte order mark.
  package let bytes: [UInt8]
  /// The offset of the first byte that is not read yet.
  var at = 0
  /// The offset of the last token.
  package private(set) var start = 0
  private let format: CodecError.Format

  /// A part of a document.
  package enum Token {
    /// Literal bytes of text in an element, including those of a character data section.
    case text(Range<Int>)
    /// The character in an element for an entity.
    case character(Unicode.Scalar)
    /// The beginning of a start tag. Its attributes are to be read or skipped next.
    case start(String)
    /// An end tag.
    case end(String)
  }

  /// A part of a start tag after the name.
  package enum TagPart {
    case attribute(Attribute)
    /// The end of the tag, which may also be that of the element.
    case end(isEmpty: Bool)
  }

  /// An attribute.
  package struct Attribute {
    package let name: String
    /// The value with the characters for its entities, and spaces instead of other white space (XML
    /// 1.0, 3.3.3).
    package let value: String
    /// The offset of the attribute.
    package let offset: Int
  }

  /// Scans a document.
  ///
  /// - Parameter format: the format for errors.
  /// - Throws: `unsupported` if it is not text in UTF-8.
  package init(_ bytes: [UInt8], in format: CodecError.Format) throws(CodecError) {
    self.init(
      text: bytes.starts(with: [0xef, 0xbb, 0xbf]) ? Array(bytes.dropFirst(3)) : bytes, in: format)
    if let offset = InputText.firstInvalid(self.bytes.span) ?? self.bytes.firstIndex(of: 0) {
      throw CodecError(
        .unsupported, in: format, reason: "it is not text in UTF-8", at: .offset(offset))
    }
  }

  /// Scans text that is valid UTF-8.
  init(text: [UInt8], in format: CodecError.Format) {
    bytes = text
    self.format = format
  }

  /// Reads the next token, or nil at the end of the document.
  ///
  /// - Parameter inElement: whether an element is open. White space outside elements is skipped,
  ///   and other text refused.
  package mutating func next(inElement: Bool) throws(CodecError) -> Token? {
    while let byte {
      start = at
      if byte != UInt8(ascii: "<") {
        if inElement { return try text() }
        skipSpace()
        if let byte = self.byte, byte != UInt8(ascii: "<") { throw textOutside() }
      } else if has("<!--") {
        try skip(through: "-->", of: "a comment")
      } else if has("<?") {
        try skip(through: "?>", of: "a processing instruction")
      } else if has("<![CDATA[") {
        guard inElement else { throw textOutside() }
        return .text(try characterData())
      } else if has("<!") {
        throw failure("it has a document type", kind: .unsupported)
      } else if has("</") {
        return .end(try endTag())
      } else {
        at += 1
        return .start(try name())
      }
    }
    return nil
  }
}

// MARK: - Text

extension XMLScanner {
  private mutating func text() throws(CodecError) -> Token {
    if byte == UInt8(ascii: "&") { return .character(try entity()) }
    while let byte, byte != UInt8(ascii: "<"), byte != UInt8(ascii: "&") { at += 1 }
    return .text(start..<at)
  }

  /// Skips a character data section and returns the range of its text.
  mutating func characterData() throws(CodecError) -> Range<Int> {
    let first = at + 9
    try skip(through: "]]>", of: "a CDATA section")
    return first..<(at - 3)
  }

  /// Reads an entity and returns its character.
  mutating func entity() throws(CodecError) -> Unicode.Scalar {
    let body = bytes[(at + 1)...].prefix(12).prefix { $0 != UInt8(ascii: ";") }
    guard body.endIndex < bytes.count, bytes[body.endIndex] == UInt8(ascii: ";") else {
      throw failure("'&' does not begin an entity")
    }
    let name = String(decoding: body, as: UTF8.self)
    guard let scalar = XMLElement.scalar(named: name) else {
      throw failure("unknown entity '\(InputText.printable(name))'")
    }
    at = body.endIndex + 1
    return scalar
  }

  private func textOutside() -> CodecError { failure("text is outside an element") }
}

// MARK: - Tags

extension XMLScanner {
  /// Reads the next attribute of a start tag, or its end.
  package mutating func nextPart() throws(CodecError) -> TagPart {
    let end = at
    skipSpace()
    let isEmpty = has("/>")
    if isEmpty || has(">") {
      at += isEmpty ? 2 : 1
      return .end(isEmpty: isEmpty)
    }
    guard byte != nil else { throw unterminated(tagAt: start) }
    guard at > end else { throw failure("an attribute is invalid") }
    return .attribute(try attribute())
  }

  private mutating func attribute() throws(CodecError) -> Attribute {
    let offset = at
    let name = try name()
    skipSpace()
    guard has("=") else { throw failure("an attribute has no value") }
    at += 1
    skipSpace()
    guard let quote = byte, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
      throw failure("a value has no quotes")
    }
    at += 1
    var value: [UInt8] = []
    while let byte, byte != quote {
      guard byte != UInt8(ascii: "<") else { throw failure("a value contains '<'") }
      if byte == UInt8(ascii: "&") {
        value.append(contentsOf: String(try entity()).utf8)
      } else {
        value.append(byte.isSpace ? 0x20 : byte)
        at += 1
      }
    }
    guard byte != nil else {
      throw failure("a value is not terminated", at: offset, kind: .truncated)
    }
    at += 1
    return Attribute(name: name, value: String(decoding: value, as: UTF8.self), offset: offset)
  }

  /// Skips the rest of a start tag without reading its attributes. Returns whether it ends its
  /// element, too.
  ///
  /// - Parameter start: the offset of the tag, for errors.
  mutating func skipAttributes(ofTagAt start: Int) throws(CodecError) -> Bool {
    var quote: UInt8?
    while let byte {
      at += 1
      if let begin = quote {
        if byte == begin { quote = nil }
      } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
        quote = byte
      } else if byte == UInt8(ascii: ">") {
        return bytes[at - 2] == UInt8(ascii: "/")
      } else if byte == UInt8(ascii: "<") {
        break
      }
    }
    throw unterminated(tagAt: start)
  }

  private mutating func endTag() throws(CodecError) -> String {
    at += 2
    let name = try name()
    skipSpace()
    guard has(">") else { throw unterminated(tagAt: start) }
    at += 1
    return name
  }

  private func unterminated(tagAt start: Int) -> CodecError {
    failure(
      "a tag is not terminated", at: start, kind: byte == nil ? .truncated : .malformed)
  }

  private mutating func name() throws(CodecError) -> String {
    let first = at
    while let byte, Self.isName(byte) { at += 1 }
    guard at > first else { throw failure("a name is missing") }
    return String(decoding: bytes[first..<at], as: UTF8.self)
  }

  /// Whether a byte can be part of a name. Bytes of characters beyond ASCII are not distinguished.
  private static func isName(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
      UInt8(ascii: "."), UInt8(ascii: ":"), 0x80...:
      true
    default: false
    }
  }
}

// MARK: - Positions

extension XMLScanner {
  /// The byte that is read next, or nil at the end.
  var byte: UInt8? { at < bytes.count ? bytes[at] : nil }

  /// Whether the input continues with `text`. Most texts differ in the first bytes.
  func has(_ text: StaticString) -> Bool {
    let count = text.utf8CodeUnitCount
    guard bytes.count - at >= count else { return false }
    return text.withUTF8Buffer { letters in
      var index = 0
      while index < count, unsafe bytes[at + index] == letters[index] { index += 1 }
      return index == count
    }
  }

  mutating func skipSpace() {
    while let byte, byte.isSpace { at += 1 }
  }

  /// Skips everything up to the end of a section.
  ///
  /// - Parameter what: the section, for errors.
  mutating func skip(through end: StaticString, of what: String) throws(CodecError) {
    let start = at
    while byte != nil {
      if has(end) {
        at += end.utf8CodeUnitCount
        return
      }
      at += 1
    }
    throw failure("\(what) is not terminated", at: start, kind: .truncated)
  }

  /// Returns an error at the current or another offset, with line and column.
  package func failure(
    _ reason: String, at offset: Int? = nil, kind: CodecError.Kind = .malformed
  ) -> CodecError {
    CodecError(kind, in: format, reason: reason, at: .mark(Mark(of: offset ?? at, in: bytes.span)))
  }
}

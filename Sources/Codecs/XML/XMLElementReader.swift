/// Reads an XML document into elements, with a stack of its own and within limits.
struct XMLElementReader {
  private let bytes: [UInt8]
  private let limits: XMLElement.Limits
  private var at = 0
  private var count = 0
  /// The elements that are open, the root first, with the bytes of their text.
  private var open: [(element: XMLElement, text: [UInt8])] = []
  private var root: XMLElement?

  init(_ bytes: [UInt8], limits: XMLElement.Limits) throws(CodecError) {
    let bytes = bytes.starts(with: [0xef, 0xbb, 0xbf]) ? Array(bytes.dropFirst(3)) : bytes
    guard bytes.count <= limits.bytes else {
      throw CodecError(.limit, in: .xml, reason: "it has more than \(limits.bytes) bytes")
    }
    if let offset = InputText.firstInvalid(bytes.span) ?? bytes.firstIndex(of: 0) {
      throw CodecError(
        .unsupported, in: .xml, reason: "it is not text in UTF-8", at: .offset(offset))
    }
    self.bytes = bytes
    self.limits = limits
  }

  /// Reads the document up to its end.
  mutating func document() throws(CodecError) -> XMLElement {
    while at < bytes.count {
      if bytes[at] != UInt8(ascii: "<") {
        try readText()
      } else if has("<!--") {
        try skip(through: "-->", of: "a comment")
      } else if has("<?") {
        try skip(through: "?>", of: "a processing instruction")
      } else if has("<![CDATA[") {
        try readCharacterData()
      } else if has("<!") {
        throw failure("it has a document type", kind: .unsupported)
      } else if has("</") {
        try readEnd()
      } else {
        try readStart()
      }
    }
    if let unclosed = open.last {
      throw failure("<\(unclosed.element.name)> is not closed", kind: .truncated)
    }
    guard let root else { throw failure("it has no element", kind: .truncated) }
    return root
  }

  // MARK: - Text

  private mutating func readText() throws(CodecError) {
    let start = at
    let isText = { (byte: UInt8) in byte != UInt8(ascii: "<") && byte != UInt8(ascii: "&") }
    while at < bytes.count, isText(bytes[at]) { at += 1 }
    if open.isEmpty {
      guard at > start, bytes[start..<at].allSatisfy(\.isSpace) else {
        throw failure("text is outside an element", at: start)
      }
      return
    }
    let last = open.count - 1
    open[last].text.append(contentsOf: bytes[start..<at])
    if at < bytes.count, bytes[at] == UInt8(ascii: "&") {
      open[last].text.append(contentsOf: String(try entity()).utf8)
    }
  }

  private mutating func readCharacterData() throws(CodecError) {
    guard !open.isEmpty else { throw failure("text is outside an element") }
    let start = at + 9
    try skip(through: "]]>", of: "a CDATA section")
    open[open.count - 1].text.append(contentsOf: bytes[start..<(at - 3)])
  }

  private mutating func entity() throws(CodecError) -> Unicode.Scalar {
    let start = at
    let body = bytes[(at + 1)...].prefix(10).prefix { $0 != UInt8(ascii: ";") }
    guard body.endIndex < bytes.count, bytes[body.endIndex] == UInt8(ascii: ";"),
      let scalar = XMLElement.scalar(named: String(decoding: body, as: UTF8.self))
    else { throw failure("'&' does not begin a known entity", at: start) }
    at = body.endIndex + 1
    return scalar
  }

  // MARK: - Tags

  private mutating func readStart() throws(CodecError) {
    let start = at
    guard root == nil else { throw failure("there is a second root element") }
    guard open.count < limits.depth else {
      throw failure("it is nested more than \(limits.depth) levels deep", kind: .limit)
    }
    count += 1
    guard count <= limits.elements else {
      throw failure("it has more than \(limits.elements) elements", kind: .limit)
    }
    at += 1
    let name = try name(start)
    let isEmpty = try skipAttributes(start)
    open.append((XMLElement(name), []))
    if isEmpty { close() }
  }

  private mutating func readEnd() throws(CodecError) {
    let start = at
    at += 2
    let name = try name(start)
    while at < bytes.count, bytes[at].isSpace { at += 1 }
    guard has(">") else { throw failure("a tag is not terminated", at: start) }
    guard let last = open.last, last.element.name == name else {
      throw failure("</\(InputText.printable(name))> closes no element", at: start)
    }
    at += 1
    close()
  }

  private mutating func close() {
    guard let closed = open.popLast() else { return }
    let text = closed.text
    var element = closed.element
    // White space between children is indentation.
    let isIndentation = !element.children.isEmpty && text.allSatisfy(\.isSpace)
    element.text = isIndentation ? "" : String(decoding: text, as: UTF8.self)
    if open.isEmpty {
      root = element
    } else {
      open[open.count - 1].element.children.append(element)
    }
  }

  /// Reads a name and returns its part after a namespace's prefix.
  private mutating func name(_ start: Int) throws(CodecError) -> String {
    let first = at
    while at < bytes.count, Self.isName(bytes[at]) { at += 1 }
    let words = bytes[first..<at].split(
      separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
    guard let local = words.last, !local.isEmpty else {
      throw failure("a name is missing", at: start)
    }
    return String(decoding: local, as: UTF8.self)
  }

  /// Skips the rest of a start tag. Returns whether it closes its element, too.
  private mutating func skipAttributes(_ start: Int) throws(CodecError) -> Bool {
    var quote: UInt8?
    while at < bytes.count {
      let byte = bytes[at]
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
    throw failure(
      "a tag is not terminated", at: start, kind: at < bytes.count ? .malformed : .truncated)
  }

  private static func isName(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
      UInt8(ascii: "."), UInt8(ascii: ":"), 0x80...:
      true
    default: false
    }
  }

  // MARK: - Positions

  private func has(_ text: StaticString) -> Bool {
    guard bytes.count - at >= text.utf8CodeUnitCount else { return false }
    return text.withUTF8Buffer { unsafe bytes[at..<(at + $0.count)].elementsEqual($0) }
  }

  private mutating func skip(through end: StaticString, of what: String) throws(CodecError) {
    let start = at
    while at < bytes.count {
      if has(end) {
        at += end.utf8CodeUnitCount
        return
      }
      at += 1
    }
    throw failure("\(what) is not terminated", at: start, kind: .truncated)
  }

  private func failure(
    _ reason: String, at offset: Int? = nil, kind: CodecError.Kind = .malformed
  ) -> CodecError {
    CodecError(kind, in: .xml, reason: reason, at: .mark(Mark(of: offset ?? at, in: bytes.span)))
  }
}

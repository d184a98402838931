internal import Codecs

/// Reads an XML file as text (XML 1.0 with namespaces): elements and attributes. Refused are document
/// types, whose entities can expand without bound, and encodings other than UTF-8.
struct AndroidXMLTextReader {
  private let bytes: [UInt8]
  private var at = 0
  private var builder = AndroidXMLBuilder()
  /// The declared namespaces: the prefix, the URI and the depth of the element.
  private var namespaces: [(prefix: String, uri: String, depth: Int)] = []
  private var depth = 0
  /// The line and column of the element begun last, and its offset, from which the next ones are
  /// counted: each byte is looked at once.
  private var line = 1
  private var lineStart = 0
  private var counted = 0

  init(_ bytes: [UInt8]) {
    self.bytes = bytes.starts(with: [0xef, 0xbb, 0xbf]) ? Array(bytes.dropFirst(3)) : bytes
  }

  /// Returns the root element.
  mutating func document() throws(CodecError) -> AndroidXML {
    guard String(validating: bytes, as: UTF8.self) != nil, !bytes.contains(0) else {
      throw CodecError(.unsupported, in: .androidXML, reason: "it is not text in UTF-8")
    }
    while at < bytes.count {
      if bytes[at] != UInt8(ascii: "<") {
        try skipText()
      } else if has("<!--") {
        try skip(through: "-->", of: "a comment")
      } else if has("<?") {
        try skip(through: "?>", of: "a processing instruction")
      } else if has("<![CDATA[") {
        try skip(through: "]]>", of: "a CDATA section")
      } else if has("<!") {
        throw fault("it has a document type", kind: .unsupported)
      } else if has("</") {
        try readEnd()
      } else {
        try readStart()
      }
    }
    return try builder.finish(at: mark(at))
  }

  private mutating func skipText() throws(CodecError) {
    if builder.current == nil, !Self.isSpace(bytes[at]) {
      throw fault("text is outside an element")
    }
    at += 1
  }

  // MARK: - Elements

  private mutating func readStart() throws(CodecError) {
    let start = at
    let position = CodecError.Position.mark(nextMark())
    at += 1
    let name = try self.name()
    depth += 1
    var attributes: [(name: String, value: String, at: Int)] = []
    while true {
      let before = at
      skipSpace()
      if has("/>") || has(">") { break }
      guard at > before else { throw fault("an attribute is invalid") }
      guard attributes.count < Self.attributeLimit else {
        throw fault(
          "an element has more than \(Self.attributeLimit) attributes", at: start, kind: .limit)
      }
      attributes.append(try attribute())
    }
    let isEmpty = has("/>")
    at += isEmpty ? 2 : 1
    try builder.begin(
      AndroidXML(name: name, attributes: try resolve(attributes), position: position))
    if isEmpty { try end(name, start) }
  }

  private mutating func readEnd() throws(CodecError) {
    let start = at
    at += 2
    let name = try self.name()
    skipSpace()
    guard has(">") else { throw fault("a tag is not terminated") }
    at += 1
    try end(name, start)
  }

  private mutating func end(_ name: String, _ start: Int) throws(CodecError) {
    try builder.end(name, at: .offset(start))
    namespaces.removeAll { $0.depth == depth }
    depth -= 1
  }

  private mutating func attribute() throws(CodecError) -> (name: String, value: String, at: Int) {
    let start = at
    try builder.countAttribute(at: .offset(start))
    let name = try self.name()
    skipSpace()
    guard has("=") else { throw fault("an attribute has no value") }
    at += 1
    skipSpace()
    guard at < bytes.count, bytes[at] == UInt8(ascii: "\"") || bytes[at] == UInt8(ascii: "'") else {
      throw fault("a value has no quotes")
    }
    let quote = bytes[at]
    at += 1
    var value: [UInt8] = []
    while at < bytes.count, bytes[at] != quote {
      guard bytes[at] != UInt8(ascii: "<") else { throw fault("a value contains '<'") }
      if bytes[at] == UInt8(ascii: "&") {
        value += Array(String(try entity()).utf8)
      } else {
        value.append(Self.isSpace(bytes[at]) ? 0x20 : bytes[at])
        at += 1
      }
    }
    guard at < bytes.count else { throw fault("a value has no end", at: start) }
    at += 1
    let text = String(decoding: value, as: UTF8.self)
    try builder.count(text, at: .offset(start))
    return (name, text, start)
  }

  /// Separates the declarations of namespaces, and returns the other attributes with their
  /// namespaces.
  private mutating func resolve(
    _ attributes: [(name: String, value: String, at: Int)]
  ) throws(CodecError) -> [AndroidXML.Attribute] {
    for (name, value, start) in attributes where name.hasPrefix("xmlns:") {
      guard namespaces.count < Self.attributeLimit else {
        throw fault("it has more than \(Self.attributeLimit) namespaces", at: start, kind: .limit)
      }
      namespaces.append((String(name.dropFirst(6)), value, depth))
    }
    var resolved: [AndroidXML.Attribute] = []
    for (name, value, start) in attributes where name != "xmlns" && !name.hasPrefix("xmlns:") {
      let parts = name.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      var (uri, local) = ("", name)
      if parts.count == 2 {
        guard let known = namespaces.last(where: { $0.prefix == parts[0] }) else {
          throw fault("the prefix '\(parts[0])' has no namespace", at: start)
        }
        (uri, local) = (known.uri, String(parts[1]))
      }
      guard !resolved.contains(where: { $0.namespace == uri && $0.name == local }) else {
        throw fault("the attribute '\(name)' is given twice", at: start)
      }
      resolved.append(AndroidXML.Attribute(namespace: uri, name: local, value: value))
    }
    return resolved
  }

  // MARK: - Words

  private mutating func name() throws(CodecError) -> String {
    let start = at
    while at < bytes.count, Self.isName(bytes[at]) { at += 1 }
    guard at > start else { throw fault("a name is missing") }
    let name = String(decoding: bytes[start..<at], as: UTF8.self)
    try builder.count(name, at: .offset(start))
    return name
  }

  private mutating func entity() throws(CodecError) -> Unicode.Scalar {
    let start = at
    let body = bytes[(at + 1)...].prefix(10).prefix { $0 != UInt8(ascii: ";") }
    guard body.endIndex < bytes.count, bytes[body.endIndex] == UInt8(ascii: ";"),
      let scalar = Self.scalar(String(decoding: body, as: UTF8.self))
    else { throw fault("'&' does not begin a known entity", at: start) }
    at = body.endIndex + 1
    return scalar
  }

  private static func scalar(_ name: String) -> Unicode.Scalar? {
    switch name {
    case "lt": return "<"
    case "gt": return ">"
    case "amp": return "&"
    case "quot": return "\""
    case "apos": return "'"
    default: break
    }
    let isHex = name.hasPrefix("#x")
    let digits = name.dropFirst(isHex ? 2 : 1)
    guard name.hasPrefix("#"), digits.utf8.allSatisfy({ $0 != UInt8(ascii: "+") }),
      let number = UInt32(digits, radix: isHex ? 16 : 10), number != 0
    else { return nil }
    return Unicode.Scalar(number)
  }

  private mutating func skipSpace() {
    while at < bytes.count, Self.isSpace(bytes[at]) { at += 1 }
  }

  private mutating func skip(through end: String, of what: String) throws(CodecError) {
    let start = at
    while at < bytes.count, !has(end) { at += 1 }
    guard at < bytes.count else { throw fault("\(what) has no end", at: start) }
    at += end.utf8.count
  }

  private func has(_ text: String) -> Bool { bytes[at...].starts(with: text.utf8) }

  private static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || (0x09...0x0d).contains(byte)
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

  /// Returns the line and column of the current position.
  private mutating func nextMark() -> Mark {
    while let newline = bytes[counted..<at].firstIndex(of: UInt8(ascii: "\n")) {
      line += 1
      lineStart = newline + 1
      counted = lineStart
    }
    counted = at
    // Columns count scalars, but only near the start of a line, which may be the whole file.
    let before = bytes[lineStart..<at].prefix(Self.attributeLimit)
    let column = before.count { $0 & 0xc0 != 0x80 } + (at - lineStart - before.count)
    return Mark(line: line, column: column + 1)
  }

  /// The most attributes of one element, and namespaces of one file.
  private static let attributeLimit = 256

  private func mark(_ offset: Int) -> CodecError.Position {
    .mark(Mark(of: offset, in: bytes.span))
  }

  private func fault(
    _ reason: String, at offset: Int? = nil, kind: CodecError.Kind = .malformed
  ) -> CodecError {
    CodecError(kind, in: .androidXML, reason: reason, at: mark(offset ?? at))
  }
}

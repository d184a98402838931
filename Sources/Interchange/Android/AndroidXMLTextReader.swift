internal import Codecs

/// Reads an XML file as text (XML 1.0 with namespaces): elements and attributes. Document types,
/// whose entities can expand without bound, and encodings other than UTF-8 are refused.
struct AndroidXMLTextReader {
  private var scanner: XMLScanner
  private var builder = AndroidXMLBuilder()
  /// The declared namespaces: the prefix, the URI and the depth of the element.
  private var namespaces: [(prefix: String, uri: String, depth: Int)] = []
  private var depth = 0
  /// The line and column of the element begun last, and its offset, from which the next ones are
  /// counted: each byte is examined once.
  private var line = 1
  private var lineStart = 0
  private var counted = 0

  /// - Throws: `unsupported` if it is not text in UTF-8.
  init(_ bytes: [UInt8]) throws(CodecError) {
    scanner = try XMLScanner(bytes, in: .androidXML)
  }

  /// Returns the root element.
  mutating func document() throws(CodecError) -> AndroidXML {
    while let token = try scanner.next(inElement: builder.current != nil) {
      switch token {
      case .text, .character: break
      case .start(let name): try readStart(name)
      case .end(let name): try end(name)
      }
    }
    return try builder.finish(at: .mark(Mark(of: scanner.bytes.count, in: scanner.bytes.span)))
  }

  // MARK: - Elements

  private mutating func readStart(_ name: String) throws(CodecError) {
    let position = CodecError.Position.mark(nextMark())
    try builder.count(name, at: position)
    depth += 1
    let (attributes, isEmpty) = try attributes()
    try builder.begin(
      AndroidXML(name: name, attributes: try resolve(attributes), position: position))
    if isEmpty { try end(name) }
  }

  private mutating func end(_ name: String) throws(CodecError) {
    try builder.end(name, at: .offset(scanner.start))
    namespaces.removeAll { $0.depth == depth }
    depth -= 1
  }

  /// Reads the rest of a start tag.
  private mutating func attributes() throws(CodecError) -> ([XMLScanner.Attribute], isEmpty: Bool) {
    var attributes: [XMLScanner.Attribute] = []
    while true {
      switch try scanner.nextPart() {
      case .end(let isEmpty): return (attributes, isEmpty)
      case .attribute(let attribute):
        guard attributes.count < Self.attributeLimit else {
          throw scanner.failure(
            "an element has more than \(Self.attributeLimit) attributes", at: scanner.start,
            kind: .limit)
        }
        let position = CodecError.Position.offset(attribute.offset)
        try builder.countAttribute(at: position)
        try builder.count(attribute.name, at: position)
        try builder.count(attribute.value, at: position)
        attributes.append(attribute)
      }
    }
  }

  /// Separates the declarations of namespaces, and returns the other attributes with their
  /// namespaces.
  private mutating func resolve(
    _ attributes: [XMLScanner.Attribute]
  ) throws(CodecError) -> [AndroidXML.Attribute] {
    for attribute in attributes where attribute.name.hasPrefix("xmlns:") {
      guard namespaces.count < Self.attributeLimit else {
        throw scanner.failure(
          "it has more than \(Self.attributeLimit) namespaces", at: attribute.offset, kind: .limit)
      }
      namespaces.append((String(attribute.name.dropFirst(6)), attribute.value, depth))
    }
    var resolved: [AndroidXML.Attribute] = []
    for attribute in attributes
    where attribute.name != "xmlns" && !attribute.name.hasPrefix("xmlns:") {
      let name = attribute.name
      let parts = name.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      var (uri, local) = ("", name)
      if parts.count == 2 {
        guard let known = namespaces.last(where: { $0.prefix == parts[0] }) else {
          throw scanner.failure("the prefix '\(parts[0])' has no namespace", at: attribute.offset)
        }
        (uri, local) = (known.uri, String(parts[1]))
      }
      guard !resolved.contains(where: { $0.namespace == uri && $0.name == local }) else {
        throw scanner.failure("the attribute '\(name)' is given twice", at: attribute.offset)
      }
      resolved.append(AndroidXML.Attribute(namespace: uri, name: local, value: attribute.value))
    }
    return resolved
  }

  // MARK: - Positions

  /// Returns the line and column of the current tag.
  private mutating func nextMark() -> Mark {
    let (bytes, start) = (scanner.bytes, scanner.start)
    while let newline = bytes[counted..<start].firstIndex(of: UInt8(ascii: "\n")) {
      line += 1
      lineStart = newline + 1
      counted = lineStart
    }
    counted = start
    // Columns count scalars, but only near the start of a line, which may be the whole file.
    let before = bytes[lineStart..<start].prefix(Self.attributeLimit)
    let column = before.count { $0 & 0xc0 != 0x80 } + (start - lineStart - before.count)
    return Mark(line: line, column: column + 1)
  }

  /// The maximum number of attributes of one element, and of namespaces of one file.
  private static let attributeLimit = 256
}

/// Reads an XML document into elements, with an explicit stack and within limits.
struct XMLElementReader {
  private var scanner: XMLScanner
  private let limits: XMLElement.Limits
  private var count = 0
  /// The elements that are open, the root first, with the bytes of their text.
  private var open: [(element: XMLElement, text: [UInt8])] = []
  private var root: XMLElement?

  init(_ bytes: [UInt8], limits: XMLElement.Limits) throws(CodecError) {
    guard bytes.count <= limits.bytes else {
      throw CodecError(.limit, in: .xml, reason: "it has more than \(limits.bytes) bytes")
    }
    scanner = try XMLScanner(bytes, in: .xml)
    self.limits = limits
  }

  /// Reads the document up to its end.
  mutating func document() throws(CodecError) -> XMLElement {
    while let token = try scanner.next(inElement: !open.isEmpty) {
      switch token {
      case .text(let range): open[open.count - 1].text.append(contentsOf: scanner.bytes[range])
      case .character(let character):
        open[open.count - 1].text.append(contentsOf: String(character).utf8)
      case .start(let name): try begin(Self.local(name))
      case .end(let name): try end(Self.local(name))
      }
    }
    if let unclosed = open.last {
      throw scanner.failure("<\(unclosed.element.name)> is not closed", kind: .truncated)
    }
    guard let root else { throw scanner.failure("it has no element", kind: .truncated) }
    return root
  }

  private mutating func begin(_ name: Substring) throws(CodecError) {
    guard root == nil else { throw failure("there is a second root element") }
    guard !name.isEmpty else { throw failure("a name is missing") }
    guard open.count < limits.depth else {
      throw failure("it is nested more than \(limits.depth) levels deep", kind: .limit)
    }
    count += 1
    guard count <= limits.elements else {
      throw failure("it has more than \(limits.elements) elements", kind: .limit)
    }
    let isEmpty = try scanner.skipAttributes(ofTagAt: scanner.start)
    open.append((XMLElement(String(name)), []))
    if isEmpty { close() }
  }

  private mutating func end(_ name: Substring) throws(CodecError) {
    guard let last = open.last, last.element.name == name else {
      throw failure("</\(InputText.printable(String(name)))> closes no element")
    }
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

  /// Returns the part of a name after a namespace's prefix.
  private static func local(_ name: String) -> Substring {
    guard let colon = name.utf8.firstIndex(of: UInt8(ascii: ":")) else { return name[...] }
    return name[name.utf8.index(after: colon)...]
  }

  /// Returns an error at the last token.
  private func failure(_ reason: String, kind: CodecError.Kind = .malformed) -> CodecError {
    scanner.failure(reason, at: scanner.start, kind: kind)
  }
}

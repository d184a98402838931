/// An element of an XML document (XML 1.0): its children and its text. For servers' answers, which
/// have their values in the text of elements; attributes are skipped.
package struct XMLElement: Sendable, Hashable {
  /// The name without a namespace's prefix.
  package let name: String
  /// The text between the tags, excluding that of children; for an element with children, excluding
  /// text that is only white space.
  package internal(set) var text: String
  /// The elements directly inside, in their order.
  package internal(set) var children: [XMLElement]

  /// Creates an element.
  package init(_ name: String, text: String = "", children: [XMLElement] = []) {
    self.name = name
    self.text = text
    self.children = children
  }

  /// Returns the first child with a name.
  package func child(_ name: String) -> XMLElement? { children.first { $0.name == name } }

  /// Returns the text of the first child with a name.
  package func text(of name: String) -> String? { child(name)?.text }

  /// Returns all children with a name.
  package func children(_ name: String) -> [XMLElement] { children.filter { $0.name == name } }

  /// The bounds of a document.
  package struct Limits: Sendable {
    package var bytes = 8 << 20
    package var elements = 100_000
    package var depth = 32

    /// Creates the default bounds.
    package init() {}
  }

  /// Reads the root element of a document in UTF-8.
  ///
  /// - Throws: `unsupported` for a document type, whose entities can expand without bound, and for
  ///   other encodings; `limit` beyond the bounds; `truncated` and `malformed` for anything else.
  package init(reading bytes: [UInt8], limits: Limits = Limits()) throws(CodecError) {
    var reader = try XMLElementReader(bytes, limits: limits)
    self = try reader.document()
  }

  /// Returns the character for one of XML's own entities (`lt`, `gt`, `amp`, `quot`, `apos`) or for
  /// a number (`#60`, `#x3c`), and nil for any other name.
  package static func scalar(named name: String) -> Unicode.Scalar? {
    switch name {
    case "lt": return "<"
    case "gt": return ">"
    case "amp": return "&"
    case "quot": return "\""
    case "apos": return "'"
    default: break
    }
    guard name.hasPrefix("#") else { return nil }
    let isHex = name.hasPrefix("#x")
    let digits = name.dropFirst(isHex ? 2 : 1)
    guard digits.utf8.first != UInt8(ascii: "+"),
      let value = UInt32(digits, radix: isHex ? 16 : 10), value != 0
    else { return nil }
    return Unicode.Scalar(value)
  }

  /// Returns text as the content of an element, or nil if it has a character that XML 1.0 cannot
  /// represent (2.2).
  package static func escaped(_ text: String) -> String? {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\r": result += "&#13;"
      case "\t", "\n": result.unicodeScalars.append(scalar)
      case _ where scalar.value < 0x20 || scalar.value == 0xfffe || scalar.value == 0xffff:
        return nil
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}

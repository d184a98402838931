/// The text of a pattern as given: bytes, like file names.
package struct PatternText: Sendable, Hashable {
  let bytes: [UInt8]
  /// The pattern as written, or a printable form if its bytes are not UTF-8.
  let shown: String
  let isUTF8: Bool

  /// Creates the text from bytes; `shown` replaces them in output if they are not UTF-8.
  package init(_ bytes: [UInt8], shown: String) {
    let text = String(validating: bytes, as: UTF8.self)
    (self.bytes, self.shown, isUTF8) = (bytes, text ?? shown, text != nil)
  }

  /// Creates the text from a string.
  package init(_ text: String) { (bytes, shown, isUTF8) = (Array(text.utf8), text, true) }
}

extension PatternText: ExpressibleByStringLiteral {
  package init(stringLiteral text: String) { self.init(text) }
}

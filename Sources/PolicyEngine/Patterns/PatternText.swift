/// A pattern as it is given: of bytes, as names are.
public struct PatternText: Sendable, Hashable {
  let bytes: [UInt8]
  /// The pattern as it is written; where its bytes are not UTF-8, what a person is shown.
  let shown: String
  let isUTF8: Bool

  /// Makes a pattern's text of bytes; `shown` stands for them where they are not UTF-8.
  public init(_ bytes: [UInt8], shown: String) {
    let text = String(validating: bytes, as: UTF8.self)
    (self.bytes, self.shown, isUTF8) = (bytes, text ?? shown, text != nil)
  }

  /// Makes a pattern's text of a string.
  public init(_ text: String) { (bytes, shown, isUTF8) = (Array(text.utf8), text, true) }
}

extension PatternText: ExpressibleByStringLiteral {
  public init(stringLiteral text: String) { self.init(text) }
}

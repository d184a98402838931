internal import SystemIO

/// A predicate in Cocoa's format, limited to the parts that activation rules of extensions need.
///
/// The grammar is that of the Predicate Programming Guide ("Predicate Format String Syntax", "BNF
/// Definition of Cocoa Predicates") without regular expressions (MATCHES), functions other than
/// `count`, collection operators other than `@count`, assignments, FETCH, CAST and arguments
/// (`%@`). These are refused with their position. Reserved words and operators are not
/// case-sensitive.
package struct ActivationPredicate: Sendable, Hashable {
  /// The text, as UTF-8.
  let text: [UInt8]
  let root: PredicateNode

  /// The maximum length of a text in bytes. Rules of real apps have at most a few thousand.
  package static let maximumLength = 65_536
  /// The maximum depth of nested parentheses, lists, subqueries and negations.
  package static let maximumDepth = 100

  /// Reads a predicate.
  ///
  /// - Throws: `PredicateFault` for a text that is too long, too deeply nested, or outside the
  ///   grammar.
  package init(reading string: String) throws(PredicateFault) {
    let bytes = Array(string.utf8)
    guard bytes.count <= Self.maximumLength else {
      throw PredicateFault(
        "it has \(bytes.count) bytes, more than the limit of \(Self.maximumLength)", at: 0, in: [])
    }
    text = bytes
    var parser = try PredicateParser(bytes)
    root = try parser.predicate()
  }

  /// Whether it holds for anything: `TRUEPREDICATE` alone.
  package var isAlwaysTrue: Bool { root == .constant(true) }

  /// Returns a part of the text on one line, shortened to `limit` characters.
  func excerpt(_ range: Range<Int>, limit: Int = 72) -> String {
    let words = String(decoding: text[range], as: UTF8.self).split(whereSeparator: \.isWhitespace)
    let line = words.joined(separator: " ").shownOnOneLine
    return line.count <= limit ? line : line.prefix(limit - 1) + "…"
  }
}

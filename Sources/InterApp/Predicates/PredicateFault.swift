internal import Codecs
internal import SystemIO

/// The reason why a predicate is not evaluated, and its position in the text.
package struct PredicateFault: Error, Sendable, Hashable {
  /// A sentence for the message, without the position.
  package let reason: String
  /// The line, counted from 1.
  package let line: Int
  /// The column in the line, counted in characters from 1.
  package let column: Int

  /// Creates a fault at an offset in bytes of a text.
  init(_ reason: String, at offset: Int, in text: [UInt8]) {
    let before = text[..<min(offset, text.count)]
    let newline = UInt8(ascii: "\n")
    line = before.count { $0 == newline } + 1
    let start = before.lastIndex(of: newline).map { $0 + 1 } ?? 0
    // Continuation bytes of UTF-8 are not separate characters.
    column = before[start...].count { $0 & 0xc0 != 0x80 } + 1
    self.reason = reason
  }

  /// The position in words: `column 7`, and for a text of several lines `line 2, column 7`.
  package var position: String { line == 1 ? "column \(column)" : "line \(line), column \(column)" }
}

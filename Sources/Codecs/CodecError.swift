/// Input that could not be read or a value that could not be written: the format, the reason and
/// the position.
package struct CodecError: Error, Hashable, Sendable {
  /// The kind of failure.
  package let kind: Kind
  /// The format that was read or written.
  package let format: CodecFormat
  /// The reason in plain words, without a full stop.
  package let reason: String
  /// The position in the input, if it is known.
  package let position: Position?

  /// Creates an error from its parts.
  package init(
    _ kind: Kind, in format: CodecFormat, reason: String, at position: Position? = nil
  ) {
    self.kind = kind
    self.format = format
    self.reason = reason
    self.position = position
  }

  /// The kinds of failure, which determine the hint and the handling by callers.
  package enum Kind: String, Sendable, Hashable, CaseIterable {
    /// The input violates the rules of the format.
    case malformed
    /// The input is incomplete.
    case truncated
    /// The input is valid but uses a feature that is not accepted here.
    case unsupported
    /// The input exceeds a limit of the caller.
    case limit
    /// The value cannot be represented in the format.
    case unrepresentable
    /// The C library failed for a reason of its own, such as lack of memory.
    case library
  }

  /// A position in the input.
  package enum Position: Sendable, Hashable {
    /// A line and a column of text.
    case mark(Mark)
    /// A byte offset of binary input.
    case offset(Int)
  }

  /// The line and column, or nil if the input is binary.
  package var mark: Mark? {
    if case .mark(let mark) = position { mark } else { nil }
  }

  /// The byte offset, or nil if the input is text.
  package var offset: Int? {
    if case .offset(let offset) = position { offset } else { nil }
  }
}

/// A position in a text: line and column, both from 1. A column is a Unicode scalar.
package struct Mark: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// The line, from 1.
  package let line: Int
  /// The column, from 1.
  package let column: Int

  /// Creates a mark from a line and a column, both from 1.
  package init(line: Int, column: Int) {
    self.line = line
    self.column = column
  }

  /// Computes the line and column of a byte offset in UTF-8 text.
  package init(of offset: Int, in text: Span<UInt8>) {
    var line = 1
    var column = 1
    for index in 0..<min(offset, text.count) {
      let byte = text[index]
      if byte == UInt8(ascii: "\n") {
        line += 1
        column = 1
      } else if byte & 0xC0 != 0x80 {
        column += 1
      }
    }
    self.init(line: line, column: column)
  }

  /// The mark as `3:14`.
  package var description: String { "\(line):\(column)" }

  package static func < (left: Mark, right: Mark) -> Bool {
    (left.line, left.column) < (right.line, right.column)
  }
}

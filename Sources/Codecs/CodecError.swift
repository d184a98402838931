/// Bytes that could not be read, or a value that could not be written: what was tried, why it did
/// not work, where, and what to do next.
public struct CodecError: Error, Hashable, Sendable {
  /// What kind of failure it is.
  public let kind: Kind
  /// The format that was read or written.
  public let format: CodecFormat
  /// Why not, in plain words, without a full stop.
  public let reason: String
  /// Where in the input, when that is known.
  public let position: Position?

  /// Makes an error of its parts.
  public init(_ kind: Kind, _ format: CodecFormat, _ reason: String, at position: Position? = nil) {
    self.kind = kind
    self.format = format
    self.reason = reason
    self.position = position
  }

  /// The kinds of failure; they decide the hint and what callers make of them.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// The input breaks the format's rules.
    case malformed
    /// The input ends before the format says it does.
    case truncated
    /// The input is valid in the format's full form, which is not accepted here.
    case unsupported
    /// The input is larger or deeper than the caller's limit.
    case limit
    /// A value that the format cannot hold was given to a writer.
    case unrepresentable
    /// The C library failed for a reason of its own, such as no memory.
    case library
  }

  /// A place in the input.
  public enum Position: Sendable, Hashable {
    /// A line and a column of a text.
    case mark(Mark)
    /// A byte offset of binary input.
    case offset(Int)
  }

  /// The line and column, when the input is a text.
  public var mark: Mark? {
    if case .mark(let mark) = position { mark } else { nil }
  }

  /// The byte offset, when the input is binary.
  public var offset: Int? {
    if case .offset(let offset) = position { offset } else { nil }
  }
}

/// A place in a text: line and column, both counted from 1; a column is a Unicode scalar.
public struct Mark: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// The line, from 1.
  public let line: Int
  /// The column, from 1.
  public let column: Int

  /// Makes a mark of a line and a column, both from 1.
  public init(line: Int, column: Int) {
    self.line = line
    self.column = column
  }

  /// Finds the line and column of a byte offset in a UTF-8 text.
  public init(of offset: Int, in text: Span<UInt8>) {
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

  /// The mark as compilers print it: `3:14`.
  public var description: String { "\(line):\(column)" }

  public static func < (left: Mark, right: Mark) -> Bool {
    (left.line, left.column) < (right.line, right.column)
  }
}

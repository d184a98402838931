internal import Codecs

/// A position in a policy file.
package struct PolicyLocation: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// The file, by the name of its source.
  package let file: String
  /// The line, counted from 1.
  package let line: Int
  /// The column, counted from 1.
  package let column: Int

  /// Creates a location.
  package init(file: String, line: Int, column: Int) {
    self.file = file
    self.line = line
    self.column = column
  }

  init(_ file: String, _ mark: Mark) {
    self.init(file: file, line: mark.line, column: mark.column)
  }

  /// The file name that stands for policy names and patterns given without an option.
  static let commandLine = "command line"

  /// Whether the location is in the command line and not in a file.
  package var isOfCommandLine: Bool { file == Self.commandLine || file.hasPrefix("--") }

  /// The position in the format of compilers, `site.yaml:12:5`.
  package var description: String { "\(file):\(line):\(column)" }

  /// Orders by file, then by position.
  package static func < (left: Self, right: Self) -> Bool {
    (left.file, left.line, left.column) < (right.file, right.line, right.column)
  }
}

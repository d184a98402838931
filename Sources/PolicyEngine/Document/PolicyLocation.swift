internal import Codecs

/// A place in a policy file.
public struct PolicyLocation: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// The file, as its source names it.
  public let file: String
  /// The line, from 1.
  public let line: Int
  /// The column, from 1.
  public let column: Int

  /// Makes a location.
  public init(file: String, line: Int, column: Int) {
    self.file = file
    self.line = line
    self.column = column
  }

  init(_ file: String, _ mark: Mark) {
    self.init(file: file, line: mark.line, column: mark.column)
  }

  /// What stands for the file of a name or a pattern of the command line that has no option's name.
  static let commandLine = "command line"

  /// Whether it is no place in a file, but in what the command was called with.
  public var isOfCommandLine: Bool { file == Self.commandLine || file.hasPrefix("--") }

  /// The place as compilers print it, `site.yaml:12:5`.
  public var description: String { "\(file):\(line):\(column)" }

  /// Orders by file, then by place.
  public static func < (left: Self, right: Self) -> Bool {
    (left.file, left.line, left.column) < (right.file, right.line, right.column)
  }
}

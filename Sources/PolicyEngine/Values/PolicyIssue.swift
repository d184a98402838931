package import Codecs

/// A mistake in a policy: its position, the problem, and the expected text.
public struct PolicyIssue: Error, Sendable, Hashable, CustomStringConvertible {
  /// The position in the file.
  public let location: PolicyLocation
  /// The severity.
  public let severity: Severity
  /// The kind of mistake.
  public let kind: Kind
  /// The problem.
  public let problem: String
  /// The expected text; empty if there is none.
  public let expected: String

  /// The severity of a mistake.
  public enum Severity: String, Sendable, Hashable {
    /// The policy cannot be used.
    case error
    /// The policy can be used, but perhaps not with the intended effect.
    case warning
  }

  /// The kinds of mistakes; the words are part of the JSON output.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// The file is too large or not valid YAML.
    case unreadable
    /// An unknown or missing key.
    case key
    /// An invalid value.
    case value
    /// An invalid pattern.
    case pattern
    /// A pattern that no path can match.
    case unmatchable
    /// A rule that a later one in the same list always overrides.
    case overridden
    /// Policies that extend each other, or a policy that does not exist.
    case extends
    /// A duplicate name.
    case duplicate
    /// A condition that cannot hold, or that would drop files from backups as time passes.
    case condition
    /// A rule that permits the loss of precious data.
    case loss
    /// A failed example.
    case example
  }

  /// Creates an issue.
  package init(
    _ kind: Kind, at location: PolicyLocation, _ problem: String, expected: String = "",
    severity: Severity = .error
  ) {
    self.kind = kind
    self.location = location
    self.problem = problem
    self.expected = expected
    self.severity = severity
  }

  /// The issue as one line in the format of compilers.
  public var description: String {
    let expectation = expected.isEmpty ? "" : "; expected \(expected)"
    return "\(location): \(severity.rawValue): \(problem)\(expectation)"
  }
}

extension PolicyIssue {
  /// Returns a path for messages: names separated by slashes; bytes that are not printable UTF-8
  /// are escaped.
  static func text(of path: [[UInt8]]) -> String {
    path.isEmpty ? "." : path.map(name).joined(separator: "/")
  }

  private static func name(_ bytes: [UInt8]) -> String {
    if let text = String(validating: bytes, as: UTF8.self),
      text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F })
    {
      return text
    }
    return bytes.map { byte in
      0x20..<0x7F ~= byte
        ? String(Unicode.Scalar(byte))
        : "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }.joined()
  }
}

/// The error for a policy that cannot be used, with every mistake found in it.
public struct PolicyError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The attempted action.
  public let action: String
  /// The mistakes, ordered by file and line; at least one is an error.
  public let issues: [PolicyIssue]

  /// Creates an error.
  package init(_ action: String, _ issues: [PolicyIssue]) {
    self.action = action
    self.issues = issues
  }

  /// The action and the first mistake: "cannot use the policy ios: ios.yaml:3:1: …".
  public var description: String {
    guard let first = issues.first(where: { $0.severity == .error }) else {
      return "cannot \(action)"
    }
    let expectation = first.expected.isEmpty ? "" : "; expected \(first.expected)"
    let others = issues.count - 1
    let rest = others > 0 ? " (and \(others) more)" : ""
    return "cannot \(action): \(first.location): \(first.problem)\(expectation)\(rest)"
  }

  /// The suggested remedy.
  public var hint: String? {
    guard let first = issues.first else { return "correct the policy" }
    let file = first.location.file
    if !first.location.isOfCommandLine {
      let name = Self.isPlain(file) ? file : "FILE"
      return "correct \(file); 'sandboxctl policy lint \(name)' lists every mistake"
    }
    if first.kind != .extends { return "correct \(file); sandboxctl-policy(5) describes patterns" }
    let list = "'sandboxctl policy list' lists the policies"
    return issues.count == 1 ? list : list + ", 'sandboxctl policy lint' every mistake in files"
  }

  /// Whether a word needs no quotes in a shell and is not an option.
  private static func isPlain(_ word: String) -> Bool {
    word.first != "-"
      && word.utf8.allSatisfy { byte in
        (0x61...0x7a).contains(byte | 0x20) || (0x30...0x39).contains(byte)
          || "/._-".utf8.contains(byte)
      }
  }
}

/// A position in a policy file.
public struct PolicyLocation: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// The file, by the name of its source.
  public let file: String
  /// The line, counted from 1.
  public let line: Int
  /// The column, counted from 1.
  public let column: Int

  /// Creates a location.
  public init(file: String, line: Int, column: Int) {
    self.file = file
    self.line = line
    self.column = column
  }

  /// Creates the location of a mark in a file.
  package init(_ file: String, _ mark: Mark) {
    self.init(file: file, line: mark.line, column: mark.column)
  }

  /// The file name that stands for policy names and patterns given without an option.
  static let commandLine = "command line"

  /// Whether the location is on the command line and not in a file.
  public var isOfCommandLine: Bool { file == Self.commandLine || file.hasPrefix("--") }

  /// The position in the format of compilers, `site.yaml:12:5`.
  public var description: String { "\(file):\(line):\(column)" }

  /// Orders by file, then by position.
  public static func < (left: Self, right: Self) -> Bool {
    (left.file, left.line, left.column) < (right.file, right.line, right.column)
  }
}

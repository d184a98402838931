/// A mistake in a policy: where it is, what is wrong, and what was expected.
public struct PolicyIssue: Sendable, Hashable, CustomStringConvertible {
  /// Where it is.
  public let location: PolicyLocation
  /// How bad it is.
  public let severity: Severity
  /// What kind of mistake it is.
  public let kind: Kind
  /// What is wrong.
  public let problem: String
  /// What was expected; empty where there is nothing to say.
  public let expected: String

  /// How bad a mistake is.
  public enum Severity: String, Sendable, Hashable {
    /// Nothing runs on a policy with it.
    case error
    /// The policy works, though perhaps not as it was meant.
    case warning
  }

  /// The kinds of mistakes; the words are part of JSON output.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// The file is too large, or no YAML.
    case unreadable
    /// A key that the grammar does not have, or one that is missing.
    case key
    /// A value that the grammar does not have.
    case value
    /// A text that is no pattern.
    case pattern
    /// A pattern that no path can match.
    case unmatchable
    /// A rule that a later one of the same list always overrides.
    case overridden
    /// Policies that extend each other, or one that is not there.
    case extends
    /// A name that is used twice.
    case duplicate
    /// A condition where it would lose files with time, or cannot hold.
    case condition
    /// A rule that lets go what nobody can make again.
    case loss
    /// An example that comes out otherwise.
    case example
  }

  init(
    _ kind: Kind, at location: PolicyLocation, _ problem: String, expected: String = "",
    severity: Severity = .error
  ) {
    self.kind = kind
    self.location = location
    self.problem = problem
    self.expected = expected
    self.severity = severity
  }

  /// The line that a compiler would print.
  public var description: String {
    let expectation = expected.isEmpty ? "" : "; expected \(expected)"
    return "\(location): \(severity.rawValue): \(problem)\(expectation)"
  }
}

/// A policy that cannot be used, with every mistake that was found in it.
public struct PolicyError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What was tried.
  public let action: String
  /// The mistakes, in the order of their files and lines; at least one of them an error.
  public let issues: [PolicyIssue]

  init(_ action: String, _ issues: [PolicyIssue]) {
    self.action = action
    self.issues = issues
  }

  /// What was tried and the first mistake: "cannot use the policy ios: ios.yaml:3:1: …".
  public var description: String {
    guard let first = issues.first(where: { $0.severity == .error }) else {
      return "cannot \(action)"
    }
    let expectation = first.expected.isEmpty ? "" : "; expected \(first.expected)"
    let others = issues.count - 1
    let rest = others > 0 ? " (and \(others) more)" : ""
    return "cannot \(action): \(first.location): \(first.problem)\(expectation)\(rest)"
  }

  /// What to do about it.
  public var hint: String {
    guard let first = issues.first else { return "correct the policy" }
    let file = first.location.file
    if !first.location.isOfCommandLine {
      return "correct \(file); 'sandboxctl policy lint FILE' names every mistake"
    }
    if first.kind != .extends { return "correct \(file); sandboxctl-policy(5) has all patterns" }
    let list = "'sandboxctl policy list' shows what each policy is for"
    return issues.count == 1 ? list : list + ", 'sandboxctl policy lint' each mistake in files"
  }
}

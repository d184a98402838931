/// The reason why a text is not a valid pattern.
public struct PatternError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The number of Unicode scalars before the error.
  public let offset: Int
  /// The problem.
  public let problem: String
  /// The expected text.
  public let expected: String

  /// The problem and the expected text.
  public var description: String { "\(problem); expected \(expected)" }
}

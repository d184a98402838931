/// The reason why a text is not a valid pattern.
package struct PatternError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The number of Unicode scalars before the error.
  package let offset: Int
  /// The problem.
  package let problem: String
  /// The expected text.
  package let expected: String

  /// The problem and the expected text.
  package var description: String { "\(problem); expected \(expected)" }
}

/// Why a text is no pattern.
public struct PatternError: Error, Sendable, Hashable, CustomStringConvertible {
  /// How many Unicode scalars precede the place in the text.
  public let offset: Int
  /// What is wrong.
  public let problem: String
  /// What was expected there.
  public let expected: String

  /// What is wrong and what was expected.
  public var description: String { "\(problem); expected \(expected)" }
}

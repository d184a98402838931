/// Names with random digits, for temporary files and directories. What a killed process left is
/// found by these names.
public struct RandomName: Sendable {
  private static let bytes = 8

  /// The text before the digits.
  public let prefix: String
  private let suffix: String

  /// Creates the pattern of the names.
  public init(prefix: String, suffix: String = "") {
    self.prefix = prefix
    self.suffix = suffix
  }

  /// Returns a new name.
  public func make() -> ByteString {
    ByteString(prefix + Host.randomHex(bytes: Self.bytes) + suffix)
  }

  /// Whether a name is one of these.
  public func matches(_ name: ByteString) -> Bool {
    guard let text = name.utf8, text.hasPrefix(prefix), text.hasSuffix(suffix) else { return false }
    let random = text.dropFirst(prefix.count).dropLast(suffix.count)
    return random.utf8.count == 2 * Self.bytes && random.allSatisfy(\.isHexDigit)
  }
}

/// The text of a policy file, read by the caller.
public struct PolicySource: Sendable, Hashable {
  /// The file's name in messages: a path, or `builtin:ios.yaml`.
  public let name: String
  /// The file's content, UTF-8.
  public let bytes: [UInt8]
  /// The origin, which determines the position among the layers.
  public let origin: Origin

  /// The maximum size of a policy file, in bytes.
  public static let maximumSize = 4 << 20

  /// Creates a source.
  public init(name: String, bytes: [UInt8], origin: Origin) {
    self.name = name
    self.bytes = bytes
    self.origin = origin
  }

  /// Creates a source from a string.
  public init(name: String, text: String, origin: Origin) {
    self.init(name: name, bytes: Array(text.utf8), origin: origin)
  }

  /// The part of the name after the last slash, by which overlays are ordered.
  var fileName: String {
    name.split(separator: "/").last.map(String.init) ?? name
  }
}

extension PolicySource {
  /// The origin of a policy file, in ascending order of precedence.
  public enum Origin: Int, Sendable, Hashable, Comparable, CaseIterable {
    /// Part of the program.
    case builtin
    /// The system's directory, `/etc/sandboxctl/policies`.
    case system
    /// The user's directory, `$XDG_CONFIG_HOME/sandboxctl/policies`.
    case user
    /// The command line, `--policy FILE`.
    case commandLine

    /// Orders by ascending precedence.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    /// The name in output.
    public var name: String {
      switch self {
      case .builtin: "builtin"
      case .system: "system"
      case .user: "user"
      case .commandLine: "command line"
      }
    }
  }
}

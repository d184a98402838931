/// The text of a policy file, as the caller read it.
public struct PolicySource: Sendable, Hashable {
  /// What messages call the file: a path, or `builtin:ios.yaml`.
  public let name: String
  /// The file's content, UTF-8.
  public let bytes: [UInt8]
  /// Whence it comes, which decides its place among the layers.
  public let origin: PolicyOrigin

  /// The size beyond which a file is refused, in bytes.
  public static let maximumSize = 4 << 20

  /// Makes a source.
  public init(name: String, bytes: [UInt8], origin: PolicyOrigin) {
    self.name = name
    self.bytes = bytes
    self.origin = origin
  }

  /// Makes a source of a text.
  public init(name: String, text: String, origin: PolicyOrigin) {
    self.init(name: name, bytes: Array(text.utf8), origin: origin)
  }

  /// The part of the name behind the last slash, by which overlays are ordered.
  var fileName: String {
    name.split(separator: "/").last.map(String.init) ?? name
  }
}

/// Whence a policy file comes; the weakest first.
public enum PolicyOrigin: Int, Sendable, Hashable, Comparable, CaseIterable {
  /// It is part of the program.
  case builtin
  /// The machine's own, `/etc/sandboxctl/policies`.
  case system
  /// The user's own, `$XDG_CONFIG_HOME/sandboxctl/policies`.
  case user
  /// Named on the command line, `--policy FILE`.
  case commandLine

  /// Orders as layers are, the weakest first.
  public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

  /// The word that output uses.
  public var name: String {
    switch self {
    case .builtin: "builtin"
    case .system: "system"
    case .user: "user"
    case .commandLine: "command line"
    }
  }
}

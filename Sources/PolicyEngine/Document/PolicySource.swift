public import Codecs

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
  /// Parses the content as YAML.
  ///
  /// - Parameters:
  ///   - noun: the kind of file, for example "a policy".
  ///   - limits: the limits of the text; the issue names its size limit.
  /// - Returns: the root, or the issue if the file is too large or is not YAML.
  public func parse(as noun: String, limits: YAML.Limits) -> (
    root: YAMLNode?, issues: [PolicyIssue]
  ) {
    let start = PolicyLocation(file: name, line: 1, column: 1)
    guard bytes.count <= limits.bytes else {
      let issue = PolicyIssue(
        .unreadable, at: start, "the file is too large",
        expected: "\(noun) of at most \(limits.bytes) bytes")
      return (nil, [issue])
    }
    do throws(CodecError) {
      return (try YAML.parse(bytes, limits: limits), [])
    } catch {
      let location = error.mark.map { PolicyLocation(name, $0) } ?? start
      return (nil, [PolicyIssue(.unreadable, at: location, error.reason, expected: "YAML")])
    }
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

public import SandboxModel

/// A marker of a policy: an extended attribute of an entry, or a file in a directory.
public struct Marker: Sendable, Hashable {
  /// The identifier, unique in its file.
  public let id: String
  /// The position in the file.
  public let location: PolicyLocation
  /// The attribute or file to look for.
  public let sign: Sign
  /// The container kinds to which it applies.
  public let kinds: Set<ContainerKind>
  /// Whether a marked directory covers everything below it.
  public let isInherited: Bool
  /// The values to set, where permitted (sandboxctl-policy(5), MARKERS).
  public let settings: Settings
  /// The effect on the platform's verdict.
  public let platform: Settings.Platform
  /// The OS versions to which it applies.
  public let versions: OSVersion.Range
  /// The reason, from `why`.
  public let why: String?
  /// The reference, from `source`.
  public let source: String?

  /// The form of a marker.
  public enum Sign: Sendable, Hashable {
    /// An extended attribute, with any value unless one is given.
    case attribute(name: String, value: String?)
    /// A file with this name, which marks its directory. Its content must begin with the given
    /// bytes, if any.
    case file(name: String, beginsWith: String?)
  }

  /// The name of the extended attribute on Linux, where user attributes begin with `user.`, or nil
  /// for a marker file.
  public var linuxAttribute: String? {
    guard case .attribute(let name, _) = sign else { return nil }
    let spaces = ["user.", "security.", "system.", "trusted."]
    return spaces.contains(where: name.hasPrefix) ? name : "user.\(name)"
  }

  /// Whether the attribute's value, or the beginning of the file, satisfies the marker.
  public func accepts(_ content: [UInt8]) -> Bool {
    switch sign {
    case .attribute(_, let value): value.map { Array($0.utf8) == content } ?? true
    case .file(_, let beginning): beginning.map { content.starts(with: $0.utf8) } ?? true
    }
  }

  /// Whether the marker can affect a purge: by setting `purge`, or by setting a class and
  /// with it all dispositions.
  public var concernsPurge: Bool { settings.dataClass != nil || settings.purge != nil }

  /// Whether the marker is a file, which may have been copied with its directory by accident.
  var isFile: Bool { if case .file = sign { true } else { false } }
}

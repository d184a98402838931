public import SandboxModel

/// A mark on an entry that a policy heeds: an extended attribute, or a file in a directory.
public struct Marker: Sendable, Hashable {
  /// Its name, once in a file.
  public let id: String
  /// Where it stands.
  public let location: PolicyLocation
  /// What to look for.
  public let sign: Sign
  /// The kinds of containers in which it counts.
  public let kinds: Set<ContainerKind>
  /// Whether a marked directory covers all below it.
  public let isInherited: Bool
  /// What it sets, where it may (docs/policy.md, marks).
  public let settings: Settings
  /// What it says of the platform's verdict.
  public let platform: PlatformSetting
  /// The versions of the operating system for which it counts.
  public let versions: VersionRange
  /// Why it is so.
  public let why: String?
  /// Who says so.
  public let source: String?

  /// What marks an entry.
  public enum Sign: Sendable, Hashable {
    /// An extended attribute, with any value unless one is given.
    case attribute(name: String, value: String?)
    /// A file of this name in a directory, which marks the directory; it must begin with the bytes, when
    /// any are given.
    case file(name: String, beginsWith: String?)
  }

  /// The name of the extended attribute on Linux, where users' attributes begin with `user.`;
  /// nothing for a marker that is a file.
  public var linuxAttribute: String? {
    guard case .attribute(let name, _) = sign else { return nil }
    let spaces = ["user.", "security.", "system.", "trusted."]
    return spaces.contains(where: name.hasPrefix) ? name : "user.\(name)"
  }

  /// Whether the attribute's value, or what the file begins with, is what the mark asks for.
  public func accepts(_ content: [UInt8]) -> Bool {
    switch sign {
    case .attribute(_, let value): value.map { Array($0.utf8) == content } ?? true
    case .file(_, let beginning): beginning.map { content.starts(with: $0.utf8) } ?? true
    }
  }

  /// How many bytes of the file must be read to know whether it is the mark.
  public var neededCount: Int {
    if case .file(_, let beginning?) = sign { beginning.utf8.count } else { 0 }
  }

  /// Whether it has a say in what a purge may take: by a class, from whose dispositions all starts
  /// again, or by itself.
  public var concernsPurge: Bool { settings.dataClass != nil || settings.purge != nil }

  /// Whether the mark is a file, which may have been copied along with a directory by chance.
  var isFile: Bool { if case .file = sign { true } else { false } }
}

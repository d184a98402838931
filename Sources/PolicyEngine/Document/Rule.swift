public import SandboxModel

/// A rule of a policy file: which paths it means and what it sets.
public struct Rule: Sendable, Hashable {
  /// Its name, once in a file.
  public let id: String
  /// Where it stands.
  public let location: PolicyLocation
  /// The kinds of containers in which it counts.
  public let kinds: Set<ContainerKind>
  /// The paths that it means, relative to the container's root.
  public let pattern: Pattern
  /// What it sets, for both verdicts.
  public let settings: Settings
  /// What it says of the platform's verdict.
  public let platform: PlatformSetting
  /// What must hold besides.
  public let conditions: Conditions
  /// The versions of the operating system for which it counts.
  public let versions: VersionRange
  /// Why it is so.
  public let why: String?
  /// Who says so.
  public let source: String?
  /// Why it may let go what nobody can make again.
  public let allowLoss: String?
  /// Where its pattern stands.
  let patternLocation: PolicyLocation
}

/// What must hold for a rule besides its pattern.
public struct Conditions: Sendable, Hashable {
  /// More bytes than this; never so for a directory.
  public var largerThan: Int64?
  /// One of these types; any, when there are none.
  public var types: Set<EntryType> = []
  /// One of these names lies beside what the pattern names: beside the entry, or, where the pattern
  /// ends in `/**`, beside what stands before that.
  public var siblings: [String] = []
  /// Last changed longer ago than this many seconds, counted from the scan's start.
  public var olderThan: Int64?
  /// Last changed less than this many seconds ago.
  public var newerThan: Int64?

  /// No conditions.
  public init() {}

  /// The types, a bit each.
  var typeMask: UInt8 {
    types.isEmpty ? EntryType.anyMask : types.reduce(0) { $0 | $1.meaning }
  }

  /// Whether each entry for which the other conditions hold is one for which these do.
  func cover(_ other: Conditions) -> Bool {
    func isWithin(_ limit: Int64?, _ theirs: Int64?, _ order: (Int64, Int64) -> Bool) -> Bool {
      guard let limit else { return true }
      return theirs.map { order($0, limit) } ?? false
    }
    return typeMask & other.typeMask == other.typeMask
      && isWithin(largerThan, other.largerThan, >=)
      && isWithin(olderThan, other.olderThan, >=)
      && isWithin(newerThan, other.newerThan, <=)
      && (siblings.isEmpty
        || (!other.siblings.isEmpty && Set(other.siblings).isSubset(of: siblings)))
  }
}

extension Conditions: CustomStringConvertible {
  /// The conditions in words, "type is file, larger than 1000 bytes"; empty for none.
  public var description: String {
    var parts: [String] = []
    if !types.isEmpty {
      parts.append("type is \(types.map(\.rawValue).sorted().joined(separator: " or "))")
    }
    if let largerThan { parts.append("larger than \(largerThan) bytes") }
    if !siblings.isEmpty { parts.append("beside \(siblings.joined(separator: " or "))") }
    if let olderThan { parts.append("older than \(olderThan) seconds") }
    if let newerThan { parts.append("newer than \(newerThan) seconds") }
    return parts.joined(separator: ", ")
  }
}

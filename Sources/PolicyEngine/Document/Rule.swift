public import SandboxModel

/// A rule of a policy file: the paths that it matches and the values that it sets.
public struct Rule: Sendable, Hashable {
  /// The identifier, unique in its file.
  public let id: String
  /// The position in the file.
  public let location: PolicyLocation
  /// The container kinds to which it applies.
  public let kinds: Set<ContainerKind>
  /// The pattern of the paths, relative to the container's root.
  public let pattern: Pattern
  /// The values to set in both verdicts.
  public let settings: Settings
  /// The effect on the platform's verdict.
  public let platform: Settings.Platform
  /// The additional conditions.
  public let conditions: Conditions
  /// The OS versions to which it applies.
  public let versions: OSVersion.Range
  /// The reason, from `why`.
  public let why: String?
  /// The reference, from `source`.
  public let source: String?
  /// The reason for permitting the loss of precious data.
  public let allowLoss: String?
  /// The position of its pattern.
  let patternLocation: PolicyLocation
}

extension Rule {
  /// The conditions of a rule besides its pattern.
  public struct Conditions: Sendable, Hashable {
    /// The size in bytes that the entry must exceed; never true for a directory.
    public var largerThan: Int64?
    /// The permitted types; any type if empty.
    public var types: Set<EntryType> = []
    /// The names of which one must exist beside the entry that the pattern names. For a pattern
    /// that ends in `/**`, that entry is the one named before `/**`.
    public var siblings: [String] = []
    /// The age in seconds that the last change must exceed, relative to the scan's start.
    public var olderThan: Int64?
    /// The age in seconds that the last change must not reach.
    public var newerThan: Int64?

    /// Creates empty conditions.
    public init() {}

    /// The permitted types as a bit mask.
    var typeMask: UInt8 {
      types.isEmpty ? EntryType.anyMask : types.reduce(0) { $0 | $1.meaning }
    }

    /// Whether these conditions hold for every entry for which the other conditions hold.
    func cover(_ other: Conditions) -> Bool {
      func isWithin(_ limit: Int64?, theirs: Int64?, by order: (Int64, Int64) -> Bool) -> Bool {
        guard let limit else { return true }
        return theirs.map { order($0, limit) } ?? false
      }
      return typeMask & other.typeMask == other.typeMask
        && isWithin(largerThan, theirs: other.largerThan, by: >=)
        && isWithin(olderThan, theirs: other.olderThan, by: >=)
        && isWithin(newerThan, theirs: other.newerThan, by: <=)
        && (siblings.isEmpty
          || (!other.siblings.isEmpty && Set(other.siblings).isSubset(of: siblings)))
    }
  }
}

extension Rule.Conditions: CustomStringConvertible {
  /// The conditions as text, "type is file, larger than 1000 bytes"; empty for none.
  public var description: String {
    var parts: [String] = []
    if !types.isEmpty {
      parts.append("type is \(types.map(\.rawValue).sorted().joined(separator: " or "))")
    }
    if let largerThan { parts.append("larger than \(largerThan) bytes") }
    if !siblings.isEmpty { parts.append("next to \(siblings.joined(separator: " or "))") }
    if let olderThan { parts.append("older than \(olderThan) seconds") }
    if let newerThan { parts.append("newer than \(newerThan) seconds") }
    return parts.joined(separator: ", ")
  }
}

package import SandboxModel

/// A rule of a policy file: the paths that it matches and the values that it sets.
package struct Rule: Sendable, Hashable {
  /// The identifier, unique in its file.
  package let id: String
  /// The position in the file.
  package let location: PolicyLocation
  /// The container kinds to which it applies.
  package let kinds: Set<ContainerKind>
  /// The pattern of the paths, relative to the container's root.
  package let pattern: Pattern
  /// The values to set in both verdicts.
  package let settings: Settings
  /// The effect on the platform's verdict.
  package let platform: Settings.Platform
  /// The additional conditions.
  package let conditions: Conditions
  /// The OS versions to which it applies.
  package let versions: OSVersion.Range
  /// The reason, from `why`.
  package let why: String?
  /// The reference, from `source`.
  package let source: String?
  /// The reason for permitting the loss of precious data.
  package let allowLoss: String?
  /// The position of its pattern.
  let patternLocation: PolicyLocation
}

extension Rule {
  /// The conditions of a rule besides its pattern.
  package struct Conditions: Sendable, Hashable {
    /// The size in bytes that the entry must exceed; never true for a directory.
    package var largerThan: Int64?
    /// The permitted types; any type if empty.
    package var types: Set<EntryType> = []
    /// The names of which one must exist beside the entry that the pattern names. For a pattern
    /// that ends in `/**`, that entry is the one named before `/**`.
    package var siblings: [String] = []
    /// The age in seconds that the last change must exceed, relative to the scan's start.
    package var olderThan: Int64?
    /// The age in seconds that the last change must not reach.
    package var newerThan: Int64?

    /// Creates empty conditions.
    package init() {}

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
  package var description: String {
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

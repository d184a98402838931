/// The explanation of an entry's verdicts: every rule and marker that applies, in order.
public struct Explanation: Sendable {
  /// The query.
  public let query: EntryQuery
  /// The initial verdict, followed by every rule and marker that applies to the entry.
  public let steps: [Step]
  /// The resulting verdicts.
  public let verdicts: Verdicts
  /// The marks that excluded the entry from backups until a later rule included it again.
  public let overruledMarks: [OverruledMark]

  /// The effect of one rule or marker.
  public struct Step: Sendable, Hashable {
    /// The kind of step.
    public let kind: Kind
    /// The identifier of the rule or marker, or the container kind for the start.
    public let id: String
    /// The position, or nil for the start.
    public let location: PolicyLocation?
    /// The name of its layer.
    public let layer: String
    /// The origin of the layer.
    public let origin: PolicySource.Origin
    /// The part of the policy that the layer represents.
    public let part: CompiledPolicy.Layer.Part
    /// For a marker, the depths of the entries that carry the mark, in ascending order; 0 is the
    /// container's root.
    public let bearers: [Int]
    /// Whether the step took effect.
    public let outcome: Outcome
    /// The values set for this program, by policy key.
    public let keep: [Change]
    /// The values set in the platform's verdict.
    public let platform: [Change]
    /// The reason given in the policy.
    public let why: String?
    /// The reference given in the policy.
    public let source: String?
  }

  /// The kind of a step.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// The initial verdict of everything in the container.
    case start
    /// A rule for all apps.
    case rule
    /// A rule for one app.
    case app
    /// A rule for one group.
    case group
    /// A marker.
    case marker
    /// A command-line pattern.
    case pattern
  }

  /// Whether a step took effect.
  public enum Outcome: Sendable, Hashable {
    /// All of its values were set.
    case applied
    /// Only the values permitted for data of this class were set: no class and no purge.
    case limited(DataClass)
    /// The marker may not affect data of this class.
    case refused(DataClass)
    /// The conditions, given as text, do not hold for the entry.
    case notMet(String)
  }

  /// A value that was set.
  public struct Change: Sendable, Hashable, CustomStringConvertible {
    /// The key in policy files.
    public let key: String
    /// The value in the syntax of policy files.
    public let value: String

    /// The change in the syntax of policy files, `backup: never`.
    public var description: String { "\(key): \(value)" }
  }

  /// A mark that a later rule overruled.
  public struct OverruledMark: Sendable, Hashable {
    /// The identifier of the marker.
    public let mark: String
    /// The identifier of the rule that includes the entry.
    public let rule: String
    /// The position of the rule.
    public let location: PolicyLocation?
  }
}

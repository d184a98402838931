/// The explanation of an entry's verdicts: every rule and marker that applies, in order.
package struct Explanation: Sendable {
  /// The query.
  package let query: EntryQuery
  /// The initial verdict, followed by every rule and marker that applies to the entry.
  package let steps: [Step]
  /// The resulting verdicts.
  package let verdicts: Verdicts
  /// The marks that excluded the entry from backups until a later rule included it again.
  package let overruledMarks: [OverruledMark]

  /// The effect of one rule or marker.
  package struct Step: Sendable, Hashable {
    /// The kind of step.
    package let kind: Kind
    /// The identifier of the rule or marker, or the container kind for the start.
    package let id: String
    /// The position, or nil for the start.
    package let location: PolicyLocation?
    /// The name of its layer.
    package let layer: String
    /// The origin of the layer.
    package let origin: PolicySource.Origin
    /// The part of the policy that the layer represents.
    package let part: CompiledPolicy.Layer.Part
    /// For a marker, the depths of the entries that carry the mark, in ascending order; 0 is the
    /// container's root.
    package let bearers: [Int]
    /// Whether the step took effect.
    package let outcome: Outcome
    /// The values set for this program, by policy key.
    package let keep: [Change]
    /// The values set in the platform's verdict.
    package let platform: [Change]
    /// The reason given in the policy.
    package let why: String?
    /// The reference given in the policy.
    package let source: String?
  }

  /// The kind of a step.
  package enum Kind: String, Sendable, Hashable, CaseIterable {
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
  package enum Outcome: Sendable, Hashable {
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
  package struct Change: Sendable, Hashable, CustomStringConvertible {
    /// The key in policy files.
    package let key: String
    /// The value in the syntax of policy files.
    package let value: String

    /// The change in the syntax of policy files, `backup: never`.
    package var description: String { "\(key): \(value)" }
  }

  /// A mark that a later rule overruled.
  package struct OverruledMark: Sendable, Hashable {
    /// The identifier of the marker.
    package let mark: String
    /// The identifier of the rule that includes the entry.
    package let rule: String
    /// The position of the rule.
    package let location: PolicyLocation?
  }
}

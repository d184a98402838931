/// Why an entry is judged as it is: every rule and mark that means it, in their order.
public struct Explanation: Sendable {
  /// What was asked.
  public let query: EntryQuery
  /// What the verdicts start from, and then every rule and mark that means the entry.
  public let steps: [Step]
  /// The outcome.
  public let verdicts: Verdicts
  /// The marks that would have left the entry out of backups, had not a later rule kept it.
  public let overruledMarks: [OverruledMark]

  /// What one rule or mark did.
  public struct Step: Sendable, Hashable {
    /// What it is.
    public let kind: Kind
    /// Its name; of the start, the kind of container.
    public let id: String
    /// Where it stands; nothing for a start that no file speaks of.
    public let location: PolicyLocation?
    /// The name of its layer.
    public let layer: String
    /// Whence the layer comes.
    public let origin: PolicyOrigin
    /// What part of a policy the layer is.
    public let part: PolicyLayer.Part
    /// Of a mark: how many names below the container's root the entries lie that bear it, the
    /// uppermost first; 0 is the root.
    public let bearers: [Int]
    /// Whether it counted.
    public let outcome: Outcome
    /// What it set in what we keep, by the keys of policy files.
    public let keep: [Change]
    /// What it set in the platform's verdict.
    public let platform: [Change]
    /// Why it is so, as the policy says.
    public let why: String?
    /// Who says so, as the policy names them.
    public let source: String?
  }

  /// What a step is.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// What everything in the container starts from.
    case start
    /// A rule for all.
    case rule
    /// A rule for one app.
    case app
    /// A rule for one group.
    case group
    /// A mark.
    case marker
    /// A pattern of the command line.
    case pattern
  }

  /// Whether a step counted.
  public enum Outcome: Sendable, Hashable {
    /// It set what it says.
    case applied
    /// A mark set only what it may on data of this class: no class and no purge.
    case limited(DataClass)
    /// A mark that may not touch data of this class.
    case refused(DataClass)
    /// Its conditions do not hold for the entry; they are given in words.
    case notMet(String)
  }

  /// A value that was set.
  public struct Change: Sendable, Hashable, CustomStringConvertible {
    /// The key of policy files.
    public let key: String
    /// The value, as policy files write it.
    public let value: String

    /// The change as policy files write it, `backup: never`.
    public var description: String { "\(key): \(value)" }
  }

  /// A mark that a later rule overruled.
  public struct OverruledMark: Sendable, Hashable {
    /// The mark's name.
    public let mark: String
    /// The rule that keeps the entry all the same.
    public let rule: String
    /// Where the rule stands.
    public let location: PolicyLocation?
  }
}

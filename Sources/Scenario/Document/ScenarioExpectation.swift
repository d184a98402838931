package import PolicyEngine
package import SystemIO

/// An expectation about the entries that match patterns.
package struct ScenarioExpectation: Sendable, Hashable {
  /// The patterns of logical paths, at least one; an entry has to match one of them.
  package let patterns: [Pattern]
  /// The patterns of logical paths that are excluded.
  package let exceptions: [Pattern]
  /// The assertions, at least one, each with its position.
  package let assertions: [Located]
  /// The versions of the platform to which the expectation applies.
  package let versions: OSVersion.Range
  /// The position in the file.
  package let location: PolicyLocation

  /// An assertion with its position.
  package struct Located: Sendable, Hashable {
    /// The assertion.
    package let assertion: Assertion
    /// The position in the file.
    package let location: PolicyLocation
  }

  /// An assertion about the entries that match.
  package enum Assertion: Sendable, Hashable {
    /// At least one entry exists.
    case exists
    /// No entry exists.
    case absent
    /// Each entry of the moment exists with the same bytes: files by their content, links by their
    /// target.
    case sameBytes(as: String)
    /// Each entry of the moment still exists, whatever its bytes.
    case survived(since: String)
    /// None of the entries of the moment, of which there was at least one, still exists.
    case vanished(since: String)
    /// Each entry has the class.
    case dataClass(DataClass)
    /// Each entry has the values in the given one of the two verdicts.
    case verdict(Verdicts.View, Values)
    /// Each entry itself has an exclusion mark, has none, or has the named one.
    case mark(Mark)
  }

  /// The exclusion mark that is expected.
  package enum Mark: Sendable, Hashable {
    /// Any mark.
    case excluded
    /// No mark.
    case none
    /// The extended attribute of this name, without `user.`.
    case attribute(ByteString)
  }

  /// The expected values of a verdict; nil values are not checked.
  package struct Values: Sendable, Hashable {
    package let dataClass: DataClass?
    package let backup: BackupDisposition.Mode?
    package let update: UpdateDisposition?
    package let purge: Purge?
    package let restore: RestoreDisposition?

    /// Whether and when data may be purged.
    package enum Purge: String, CaseIterable, Sendable, Hashable {
      case never
      case anytime
      case underPressure = "under-pressure"
    }
  }
}

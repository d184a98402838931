internal import Codecs
public import SandboxModel

/// A path and what a policy must say of it; a policy's own test.
public struct Example: Sendable, Hashable {
  /// Where it stands.
  public let location: PolicyLocation
  /// The container.
  public let kind: ContainerKind
  /// The entry's path below the container's root; empty for the root itself.
  public let path: [[UInt8]]
  /// The app whose container it is.
  public let app: String?
  /// The group whose container it is.
  public let group: String?
  /// What the entry is.
  public let facts: EntryFacts
  /// The identifiers of the marks that are on the entry or on directories above it, by path.
  public let marks: [[[UInt8]]: [String]]
  /// The names that directories on the way hold, by path.
  public let holdings: [[[UInt8]]: [String]]
  /// The operating system's version; unknown when there is none.
  public let osVersion: OSVersion?
  /// Where a backup would go; nothing asks for `default`.
  public let destination: Destination?
  /// What must come out.
  public let expected: Expectation
  /// What must come out for the platform.
  public let platform: Expectation

  /// The scan's start to which an example's `age` counts, in seconds since 1970.
  static let scanStart: Int64 = 4_000_000_000
}

/// Values that an example expects, each with its place.
public struct Expectation: Sendable, Hashable {
  var dataClass: Placed<DataClass>?
  var backup: Placed<BackupSetting>?
  var update: Placed<UpdateDisposition>?
  var purge: Placed<PurgeExpectation>?
  var restore: Placed<RestoreDisposition>?

  struct Placed<Value: Sendable & Hashable>: Sendable, Hashable {
    let value: Value
    let location: PolicyLocation
  }
}

/// What an example expects of `purge`: never, anytime, or those terms that it names.
struct PurgeExpectation: Sendable, Hashable {
  var isAllowed: Bool
  var order: UInt16?
  var when: PurgeTerms.Moment?
  var unit: PurgeTerms.Unit?
  var action: PurgeTerms.Action?

  func accepts(_ purge: PurgeDisposition) -> Bool {
    guard let terms = purge.terms else { return !isAllowed }
    return isAllowed && order ?? terms.order == terms.order && when ?? terms.when == terms.when
      && unit ?? terms.unit == terms.unit && action ?? terms.action == terms.action
  }
}

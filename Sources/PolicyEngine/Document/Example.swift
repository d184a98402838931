internal import Codecs
public import SandboxModel

/// A path with the expected values of its verdict; a test within a policy.
public struct Example: Sendable, Hashable {
  /// The position in the file.
  public let location: PolicyLocation
  /// The container kind.
  public let kind: ContainerKind
  /// The entry's path below the container's root; empty for the root itself.
  public let path: [[UInt8]]
  /// The app that owns the container.
  public let app: String?
  /// The group that owns the container.
  public let group: String?
  /// The properties of the entry.
  public let facts: EntryFacts
  /// The identifiers of the marks on the entry or on its parent directories, by path.
  public let marks: [[[UInt8]]: [String]]
  /// The sibling names in directories on the path, by path.
  public let holdings: [[[UInt8]]: [String]]
  /// The OS version, or nil if it is unknown.
  public let osVersion: OSVersion?
  /// The destination of the backup, or nil for the default one.
  public let destination: Destination?
  /// The expected values.
  public let expected: Expectation
  /// The expected values for the platform.
  public let platform: Expectation

  /// The reference time for `age` in examples, in seconds since 1970.
  static let scanStart: Int64 = 4_000_000_000
}

extension Example {
  /// The values that an example expects, each with its position.
  public struct Expectation: Sendable, Hashable {
    var dataClass: Located<DataClass>?
    var backup: Located<Settings.Backup>?
    var update: Located<UpdateDisposition>?
    var purge: Located<Purge>?
    var restore: Located<RestoreDisposition>?
    var protection: Located<ProtectionClass>?

    struct Located<Value: Sendable & Hashable>: Sendable, Hashable {
      let value: Value
      let location: PolicyLocation
    }

    /// The expected value of `purge`: never, anytime, or the terms that the example names.
    struct Purge: Sendable, Hashable {
      var isAllowed: Bool
      var order: UInt16?
      var when: PurgeDisposition.Terms.Moment?
      var unit: PurgeDisposition.Terms.Unit?
      var action: PurgeDisposition.Terms.Action?

      func accepts(_ purge: PurgeDisposition) -> Bool {
        guard let terms = purge.terms else { return !isAllowed }
        return isAllowed && order ?? terms.order == terms.order && when ?? terms.when == terms.when
          && unit ?? terms.unit == terms.unit && action ?? terms.action == terms.action
      }
    }
  }
}

extension Example.Expectation.Purge: CustomStringConvertible {
  var description: String {
    guard isAllowed else { return "never" }
    let parts = [
      order.map { "order: \($0)" }, when.map { "when: \($0.rawValue)" },
      unit.map { "unit: \($0.rawValue)" }, action.map { "action: \($0.rawValue)" },
    ]
    return "{\(parts.compactMap(\.self).joined(separator: ", "))}"
  }
}

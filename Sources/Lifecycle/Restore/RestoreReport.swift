internal import ArchiveStore
internal import SystemIO

/// The result of a restore.
public struct RestoreReport: Sendable {
  /// The entries that were created or replaced.
  public internal(set) var restored = RestoreTotals()
  /// The existing entries that were kept.
  public internal(set) var left = RestoreTotals()
  /// The entries that were removed because the snapshot does not have them.
  public internal(set) var deleted = RestoreTotals()
  /// Entries whose stored data is damaged: they are missing, unchanged, or without the attribute
  /// that the remark names.
  public internal(set) var damaged: [PathRemark] = []
  /// Entries or attributes that could not be restored, and entries that could not be removed.
  public internal(set) var failed: [PathRemark] = []
  /// Entries that the snapshot does not have and that were kept, with the reason.
  public internal(set) var spared: [PathRemark] = []
  /// Files of another state beside restored databases; they were moved away.
  public internal(set) var displaced: [PathRemark] = []
  /// The number of entries whose owner could not be set for lack of privileges.
  public internal(set) var ownersNotSet = 0
  /// The duration in seconds.
  public internal(set) var seconds = 0.0

  init(_ plan: RestorePlan) {
    left = plan.leaves
    damaged = plan.damaged
    failed = plan.blocked
    spared = plan.spared
  }

  /// Whether everything is restored as it was stored, except for owners.
  public var isComplete: Bool { damaged.isEmpty && failed.isEmpty }

  /// Returns the reason of an error without its action and subject.
  static func reason(_ error: any Error) -> String {
    switch error {
    case let error as SystemError: error.reason
    case let error as StoreError: error.reason
    case let error as Conflict: error.reason
    default: "\(error)"
    }
  }
}

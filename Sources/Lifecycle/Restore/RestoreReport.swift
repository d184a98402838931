internal import ArchiveStore
internal import SystemIO

/// What a restore did, and what it could not do.
public struct RestoreReport: Sendable {
  /// What was made, or gave way to what is stored.
  public internal(set) var restored = RestoreTotals()
  /// What was there and stayed.
  public internal(set) var left = RestoreTotals()
  /// What was removed, because the snapshot lacks it.
  public internal(set) var deleted = RestoreTotals()
  /// Entries whose stored data is damaged: they are not there, or as they were before, or without the
  /// attribute that is named.
  public internal(set) var damaged: [PathRemark] = []
  /// Entries, or attributes of them, that could not be made, or not be removed.
  public internal(set) var failed: [PathRemark] = []
  /// What the snapshot lacks, and what stayed all the same.
  public internal(set) var spared: [PathRemark] = []
  /// What lay beside databases that came, and is of another state of them: it was moved away.
  public internal(set) var displaced: [PathRemark] = []
  /// How many entries have another owner than in the snapshot, for lack of privilege.
  public internal(set) var ownersNotSet = 0
  /// How long it took, in seconds.
  public internal(set) var seconds = 0.0

  init(_ plan: RestorePlan) {
    left = plan.leaves
    damaged = plan.damaged
    failed = plan.blocked
    spared = plan.spared
  }

  /// Whether everything is as it was stored, owners apart.
  public var isComplete: Bool { damaged.isEmpty && failed.isEmpty }

  /// Why something failed, without the words that name what it was about.
  static func reason(_ error: any Error) -> String {
    switch error {
    case let error as SystemError: error.reason
    case let error as StoreError: error.reason
    case let error as Conflict: error.reason
    default: "\(error)"
    }
  }
}

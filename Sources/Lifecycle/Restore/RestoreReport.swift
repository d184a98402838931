/// What a restore did, and what it could not do.
public struct RestoreReport: Sendable {
  /// What was made.
  public var restored = RestoreTotals()
  /// Files whose stored data is damaged: they are not there.
  public var damaged: [PathRemark] = []
  /// Entries, or attributes of them, that could not be made.
  public var failed: [PathRemark] = []
  /// How many entries have another owner than in the snapshot, for lack of privilege.
  public var ownersNotSet = 0
  /// How long it took, in seconds.
  public var seconds = 0.0

  /// Whether everything is as it was stored, owners apart.
  public var isComplete: Bool { damaged.isEmpty && failed.isEmpty }
}

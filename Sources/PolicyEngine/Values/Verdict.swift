/// What a piece of data is and what becomes of it.
public struct Verdict: Sendable, Hashable, BitwiseCopyable {
  /// What it is.
  public var dataClass: DataClass
  /// Whether it goes into a backup.
  public var backup: BackupDisposition
  /// What becomes of it on update.
  public var update: UpdateDisposition
  /// Whether it may be purged.
  public var purge: PurgeDisposition
  /// What a restore does with it.
  public var restore: RestoreDisposition

  /// Makes a verdict.
  public init(
    _ dataClass: DataClass, backup: BackupDisposition, update: UpdateDisposition,
    purge: PurgeDisposition, restore: RestoreDisposition
  ) {
    self.dataClass = dataClass
    self.backup = backup
    self.update = update
    self.purge = purge
    self.restore = restore
  }

  /// What holds where no rule says anything: kept, may vanish on update, never purged.
  ///
  /// It is also what a class starts from whose dispositions no layer gives. Nothing is lost by
  /// silence.
  public static func silent(_ dataClass: DataClass = .unknown) -> Verdict {
    Verdict(
      dataClass, backup: BackupDisposition(.always), update: .mayVanish, purge: .never,
      restore: .restore)
  }

  /// Whether something that nobody can make again would be purged, or dropped by an update.
  public var losesSomething: Bool {
    dataClass.isPrecious && (purge != .never || update == .discard)
  }
}

/// The two answers for one entry.
public struct Verdicts: Sendable, Hashable, BitwiseCopyable {
  /// What this program does.
  public var keep: Verdict
  /// What the platform itself does, exactly.
  public var platform: Verdict

  /// Makes the two answers.
  public init(keep: Verdict, platform: Verdict) {
    self.keep = keep
    self.platform = platform
  }

  /// The answer of one view.
  public subscript(view: VerdictView) -> Verdict { view == .keep ? keep : platform }
}

/// Which of the two answers is meant.
public enum VerdictView: String, CaseIterable, Sendable, Hashable {
  /// What this program does.
  case keep
  /// What the platform itself does.
  case platform
}

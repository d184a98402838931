public import SandboxModel

/// The class of data and the policy decision for it.
public struct Verdict: Sendable, Hashable, BitwiseCopyable {
  /// The data class.
  public var dataClass: DataClass
  /// Whether it is backed up.
  public var backup: BackupDisposition
  /// The handling on update.
  public var update: UpdateDisposition
  /// Whether it may be purged.
  public var purge: PurgeDisposition
  /// The handling on restore.
  public var restore: RestoreDisposition
  /// The class of data protection of its files, or nil if no rule sets one. The metadata of a file
  /// can state another one, which takes precedence.
  public var protection: ProtectionClass?

  /// Creates a verdict.
  public init(
    _ dataClass: DataClass, backup: BackupDisposition, update: UpdateDisposition,
    purge: PurgeDisposition, restore: RestoreDisposition, protection: ProtectionClass? = nil
  ) {
    self.dataClass = dataClass
    self.backup = backup
    self.update = update
    self.purge = purge
    self.restore = restore
    self.protection = protection
  }

  /// Returns the verdict if no rule matches: kept, may vanish on update, never purged.
  ///
  /// It is also the initial verdict of a class whose dispositions no layer sets, so a missing rule
  /// never causes a loss.
  public static func silent(_ dataClass: DataClass = .unknown) -> Verdict {
    Verdict(
      dataClass, backup: BackupDisposition(.always), update: .mayVanish, purge: .never,
      restore: .restore)
  }

  /// Whether precious data would be purged, or discarded on update.
  public var losesSomething: Bool {
    dataClass.isPrecious && (purge != .never || update == .discard)
  }
}

/// The two verdicts on an entry.
public struct Verdicts: Sendable, Hashable, BitwiseCopyable {
  /// The verdict of this program.
  public var keep: Verdict
  /// The verdict of the platform itself, without deviations.
  public var platform: Verdict

  /// Creates the two verdicts.
  public init(keep: Verdict, platform: Verdict) {
    self.keep = keep
    self.platform = platform
  }

  /// Returns the verdict of a view.
  public subscript(view: View) -> Verdict { view == .keep ? keep : platform }
}

extension Verdicts {
  /// The view of one of the two verdicts.
  public enum View: String, CaseIterable, Sendable, Hashable {
    /// This program.
    case keep
    /// The platform itself.
    case platform
  }
}

/// The class of data, set by `class:` in a rule.
public enum DataClass: String, CaseIterable, Sendable, Hashable, BitwiseCopyable {
  /// Data that the user created and that cannot be recreated.
  case userData = "user-data"
  /// Data from other apps that the user has not imported yet.
  case inbox
  /// Data that the app needs to work as before, such as its databases.
  case support
  /// The user's settings.
  case preferences
  /// Data that can be downloaded again, but is not purged by this program.
  case downloaded
  /// Data that the app recreates or downloads again if it is missing.
  case cache
  /// Data with a short-lived purpose.
  case temporary
  /// The app itself.
  case bundle
  /// The platform's metadata about a container.
  case metadata
  /// Data that no rule matches: kept, and never purged.
  case unknown

  /// Whether its loss is permanent, as far as the policy knows.
  public var isPrecious: Bool { self == .userData || self == .inbox || self == .unknown }

  /// Whether a marker may make it purgeable (docs/design.md, marks).
  func acceptsMarkers(belowCache: Bool) -> Bool {
    switch self {
    case .cache, .temporary: true
    case .unknown: belowCache
    default: false
    }
  }
}

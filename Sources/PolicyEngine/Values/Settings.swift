public import SandboxModel

/// The values that a rule sets.
public struct Settings: Sendable, Hashable {
  /// The class, whose dispositions replace all values set before.
  public var dataClass: DataClass?
  /// The backup disposition, as far as the rule sets it.
  public var backup: Backup?
  /// The handling of the data on update.
  public var update: UpdateDisposition?
  /// Whether the data may be purged.
  public var purge: PurgeDisposition?
  /// The handling of the data on restore.
  public var restore: RestoreDisposition?
  /// The class of data protection. It is independent of the data class, which leaves it unchanged.
  public var protection: ProtectionClass?

  /// Creates settings.
  public init(
    dataClass: DataClass? = nil, backup: Backup? = nil, update: UpdateDisposition? = nil,
    purge: PurgeDisposition? = nil, restore: RestoreDisposition? = nil,
    protection: ProtectionClass? = nil
  ) {
    self.dataClass = dataClass
    self.backup = backup
    self.update = update
    self.purge = purge
    self.restore = restore
    self.protection = protection
  }

  /// Whether no value is set.
  public var isEmpty: Bool { self == Settings() }
}

extension Settings {
  /// The backup setting of a rule: for all destinations, or for single ones.
  public struct Backup: Sendable, Hashable {
    /// The mode for every destination; replaces everything set before.
    public var standard: BackupDisposition.Mode?
    /// The additional restriction for a repository in a cloud.
    public var cloud: BackupDisposition.Mode?
    /// The additional restriction for an unencrypted repository.
    public var unencrypted: BackupDisposition.Mode?

    /// Creates a setting.
    public init(
      _ standard: BackupDisposition.Mode? = nil, cloud: BackupDisposition.Mode? = nil,
      unencrypted: BackupDisposition.Mode? = nil
    ) {
      self.standard = standard
      self.cloud = cloud
      self.unencrypted = unencrypted
    }

    /// Returns an earlier disposition with this setting applied.
    func applied(to earlier: BackupDisposition) -> BackupDisposition {
      var disposition = standard.map { BackupDisposition($0) } ?? earlier
      if let cloud { disposition.cloud = cloud }
      if let unencrypted { disposition.unencrypted = unencrypted }
      return disposition
    }
  }

  /// The effect of a rule on the platform's verdict.
  public enum Platform: Sendable, Hashable {
    /// The same values as in the verdict of this program.
    case same
    /// No effect: the rule concerns only what this program keeps.
    case unchanged
    /// The same values, followed by these.
    case different(Settings)
  }
}

/// What a rule sets: the values that it names, and no others.
public struct Settings: Sendable, Hashable {
  /// The class from whose dispositions it starts again.
  public var dataClass: DataClass?
  /// Whether the data goes into a backup, as far as it says.
  public var backup: BackupSetting?
  /// What becomes of the data on update.
  public var update: UpdateDisposition?
  /// Whether the data may be purged.
  public var purge: PurgeDisposition?
  /// What a restore does with the data.
  public var restore: RestoreDisposition?

  /// Makes settings.
  public init(
    dataClass: DataClass? = nil, backup: BackupSetting? = nil, update: UpdateDisposition? = nil,
    purge: PurgeDisposition? = nil, restore: RestoreDisposition? = nil
  ) {
    self.dataClass = dataClass
    self.backup = backup
    self.update = update
    self.purge = purge
    self.restore = restore
  }

  /// Whether nothing is set.
  public var isEmpty: Bool { self == Settings() }
}

/// What a rule says of backups: for all destinations, or for those that it names.
public struct BackupSetting: Sendable, Hashable {
  /// What holds for every destination; it replaces all that was said before.
  public var standard: BackupMode?
  /// What holds for a repository in a cloud, besides.
  public var cloud: BackupMode?
  /// What holds for a repository that is not encrypted, besides.
  public var unencrypted: BackupMode?

  /// Makes a setting.
  public init(
    _ standard: BackupMode? = nil, cloud: BackupMode? = nil, unencrypted: BackupMode? = nil
  ) {
    self.standard = standard
    self.cloud = cloud
    self.unencrypted = unencrypted
  }

  /// The disposition that it makes of an earlier one.
  func applied(to earlier: BackupDisposition) -> BackupDisposition {
    var disposition = standard.map { BackupDisposition($0) } ?? earlier
    if let cloud { disposition.cloud = cloud }
    if let unencrypted { disposition.unencrypted = unencrypted }
    return disposition
  }
}

/// What a rule says of the platform's own verdict.
public enum PlatformSetting: Sendable, Hashable {
  /// The same as of ours.
  case same
  /// Nothing: the rule is about what this program keeps.
  case unchanged
  /// The same, and then these values.
  case different(Settings)
}

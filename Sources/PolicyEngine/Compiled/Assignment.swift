/// The values that a rule or a marker sets in one verdict.
struct Assignment: Sendable, Hashable {
  /// The values to set.
  var fields: Fields
  /// The verdict that holds the values; only those in `fields` are meaningful.
  var verdict: Verdict

  /// The values of a verdict that can be set individually.
  struct Fields: OptionSet, Sendable, Hashable {
    let rawValue: UInt8

    static let dataClass = Fields(rawValue: 1)
    static let backupStandard = Fields(rawValue: 2)
    static let backupCloud = Fields(rawValue: 4)
    static let backupUnencrypted = Fields(rawValue: 8)
    static let update = Fields(rawValue: 16)
    static let purge = Fields(rawValue: 32)
    static let restore = Fields(rawValue: 64)
    static let protection = Fields(rawValue: 128)
    static let backup: Fields = [.backupStandard, .backupCloud, .backupUnencrypted]
    /// The class and its dispositions, all of which a rule with a class sets.
    static let all: Fields = [.dataClass, .backup, .update, .purge, .restore]

    /// Returns the values that affect a backup to a destination.
    static func backup(for destination: Destination) -> Fields {
      var fields: Fields = .backupStandard
      if destination.isCloud { fields.insert(.backupCloud) }
      if destination.isUnencrypted { fields.insert(.backupUnencrypted) }
      return fields
    }
  }

  static let nothing = Assignment(fields: [], verdict: .silent())

  init(fields: Fields, verdict: Verdict) {
    self.fields = fields
    self.verdict = verdict
  }

  /// Creates the assignment of settings: all dispositions of the class, then the settings' own
  /// values.
  init(_ settings: Settings, classes: [DataClass: Verdict]) {
    self = .nothing

    if let dataClass = settings.dataClass {
      fields = .all
      verdict = classes[dataClass] ?? .silent(dataClass)
    }
    set(settings)
  }

  /// Adds the values of settings other than the class.
  mutating func set(_ settings: Settings) {
    if let backup = settings.backup {
      verdict.backup = backup.applied(to: verdict.backup)
      if backup.standard != nil { fields.formUnion(.backup) }
      if backup.cloud != nil { fields.insert(.backupCloud) }
      if backup.unencrypted != nil { fields.insert(.backupUnencrypted) }
    }
    if let update = settings.update {
      verdict.update = update
      fields.insert(.update)
    }
    if let purge = settings.purge {
      verdict.purge = purge
      fields.insert(.purge)
    }
    if let restore = settings.restore {
      verdict.restore = restore
      fields.insert(.restore)
    }
    if let protection = settings.protection {
      verdict.protection = protection
      fields.insert(.protection)
    }
  }

  /// Applies the values to a verdict.
  @inline(__always)
  func apply(to other: inout Verdict) {
    if fields == .all {
      let protection = other.protection
      other = verdict
      other.protection = protection
      return
    }
    if fields.contains(.dataClass) { other.dataClass = verdict.dataClass }
    if fields.contains(.backupStandard) { other.backup.standard = verdict.backup.standard }
    if fields.contains(.backupCloud) { other.backup.cloud = verdict.backup.cloud }
    if fields.contains(.backupUnencrypted) {
      other.backup.unencrypted = verdict.backup.unencrypted
    }
    if fields.contains(.update) { other.update = verdict.update }
    if fields.contains(.purge) { other.purge = verdict.purge }
    if fields.contains(.restore) { other.restore = verdict.restore }
    if fields.contains(.protection) { other.protection = verdict.protection }
  }

  /// Returns this assignment followed by another one.
  func followed(by other: Assignment) -> Assignment {
    var verdict = verdict
    other.apply(to: &verdict)
    return Assignment(fields: fields.union(other.fields), verdict: verdict)
  }

  /// Returns the assignment restricted to some values.
  func limited(to fields: Fields) -> Assignment {
    Assignment(fields: self.fields.intersection(fields), verdict: verdict)
  }

  /// Whether the assignment can include data in a backup to a destination.
  func mayKeep(for destination: Destination) -> Bool {
    let set = fields.intersection(.backup(for: destination))
    return (set.contains(.backupStandard) && verdict.backup.standard != .never)
      || (set.contains(.backupCloud) && verdict.backup.cloud != .never)
      || (set.contains(.backupUnencrypted) && verdict.backup.unencrypted != .never)
  }
}

/// The values that a rule or a mark sets in one verdict.
struct Assignment: Sendable, Hashable {
  /// Which values it sets.
  var fields: Fields
  /// The values; what `fields` does not name means nothing.
  var verdict: Verdict

  /// The values of a verdict that can be set by themselves.
  struct Fields: OptionSet, Sendable, Hashable {
    let rawValue: UInt8

    static let dataClass = Fields(rawValue: 1)
    static let backupStandard = Fields(rawValue: 2)
    static let backupCloud = Fields(rawValue: 4)
    static let backupUnencrypted = Fields(rawValue: 8)
    static let update = Fields(rawValue: 16)
    static let purge = Fields(rawValue: 32)
    static let restore = Fields(rawValue: 64)
    static let backup: Fields = [.backupStandard, .backupCloud, .backupUnencrypted]
    static let all: Fields = [.dataClass, .backup, .update, .purge, .restore]

    /// What counts for a backup to a destination.
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

  /// Makes the assignment of settings: all of the class's dispositions, then the settings' own.
  init(_ settings: Settings, classes: [DataClass: Verdict]) {
    self = .nothing
    if let dataClass = settings.dataClass {
      fields = .all
      verdict = classes[dataClass] ?? .silent(dataClass)
    }
    set(settings)
  }

  /// Adds what the settings name besides a class.
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
  }

  /// Sets the values in a verdict.
  @inline(__always)
  func apply(to other: inout Verdict) {
    if fields == .all {
      other = verdict
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
  }

  /// This assignment and then another one.
  func followed(by other: Assignment) -> Assignment {
    var verdict = verdict
    other.apply(to: &verdict)
    return Assignment(fields: fields.union(other.fields), verdict: verdict)
  }

  /// The assignment of those values only.
  func limited(to fields: Fields) -> Assignment {
    Assignment(fields: self.fields.intersection(fields), verdict: verdict)
  }

  /// Whether it sets something that keeps data in a backup to a destination, at least in part.
  func mayKeep(for destination: Destination) -> Bool {
    let set = fields.intersection(.backup(for: destination))
    return (set.contains(.backupStandard) && verdict.backup.standard != .never)
      || (set.contains(.backupCloud) && verdict.backup.cloud != .never)
      || (set.contains(.backupUnencrypted) && verdict.backup.unencrypted != .never)
  }
}

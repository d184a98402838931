/// The effect of a rule or marker on the two verdicts, with its conditions.
struct Operation: Sendable {
  /// The values for the verdict of this program.
  let keep: Assignment
  /// The values for the platform's verdict.
  let platform: Assignment
  /// The values for the verdict of this program if neither class nor purge may be set.
  let limitedKeep: Assignment
  /// The values for the platform's verdict if neither class nor purge may be set.
  let limitedPlatform: Assignment
  /// The extent of its permissions.
  let authority: Authority
  /// The conditions on the entry itself.
  let condition: Condition

  /// The extent of an operation's permissions.
  enum Authority: Sendable {
    /// A rule: no restrictions.
    case rule
    /// An attribute set deliberately: backup and restore anywhere, class and purge only on caches.
    case attribute
    /// A file that may have been copied by accident: no effect on precious data.
    case file
  }

  /// Creates the operation of a rule or marker.
  init(
    _ settings: Settings, _ platformSetting: Settings.Platform, condition: Condition,
    classes: [DataClass: Verdict], authority: Authority = .rule
  ) {
    let own = Assignment(settings, classes: classes)
    keep = own
    platform =
      switch platformSetting {
      case .same: own
      case .unchanged: .nothing
      case .different(let settings): own.followed(by: Assignment(settings, classes: classes))
      }
    var limited = Assignment.nothing
    limited.set(Settings(backup: settings.backup, restore: settings.restore))
    limitedKeep = limited
    limitedPlatform = platformSetting == .unchanged ? .nothing : limited
    self.authority = authority
    self.condition = condition
  }

  /// Whether the operation sets the same values for every entry that its pattern matches.
  var isUnconditional: Bool { condition.isEmpty && authority == .rule }

  /// Whether the operation sets a class of data protection.
  var setsProtection: Bool { keep.fields.union(platform.fields).contains(.protection) }

  /// Applies its values, as far as its authority permits.
  @inline(__always)
  func apply(to verdicts: inout Verdicts, belowCache: Bool) {
    switch authority {
    case .rule:
      keep.apply(to: &verdicts.keep)
      platform.apply(to: &verdicts.platform)
    case .attribute, .file:
      switch reach(verdicts.keep.dataClass, belowCache: belowCache) {
      case .full:
        keep.apply(to: &verdicts.keep)
        platform.apply(to: &verdicts.platform)
      case .limited:
        limitedKeep.apply(to: &verdicts.keep)
        limitedPlatform.apply(to: &verdicts.platform)
      case .none: break
      }
    }
  }

  /// The part of a marker's effect that applies to data of a class.
  enum Reach {
    case full
    case limited
    case none
  }

  func reach(_ dataClass: DataClass, belowCache: Bool) -> Reach {
    if authority == .rule || dataClass.acceptsMarkers(belowCache: belowCache) { return .full }
    return authority == .file && dataClass.isPrecious ? .none : .limited
  }
}

extension Operation {
  /// The conditions of a rule on the entry itself, besides its path.
  struct Condition: Sendable, Hashable {
    /// The permitted types, as a bit mask.
    var types = EntryType.anyMask
    /// The size in bytes that the entry must exceed; excludes directories. -1 for any size.
    var largerThan: Int64 = -1
    /// The age in seconds that the last change must exceed; -1 for any age.
    var olderThan: Int64 = -1
    /// The age in seconds that the last change must not reach; -1 for any age.
    var newerThan: Int64 = -1

    init() {}

    init(_ conditions: Rule.Conditions) {
      types = conditions.typeMask
      if let limit = conditions.largerThan {
        largerThan = limit
        types &= ~EntryType.bit(.directory)
      }
      olderThan = conditions.olderThan ?? -1
      newerThan = conditions.newerThan ?? -1
    }

    var isEmpty: Bool { types == EntryType.anyMask && !isDynamic }

    /// Whether the conditions depend on more than the type.
    var isDynamic: Bool { largerThan >= 0 || olderThan >= 0 || newerThan >= 0 }

    func holds(_ facts: EntryFacts, scanStart: Int64) -> Bool {
      guard types & EntryType.bit(facts.type) != 0 else { return false }
      if largerThan >= 0, facts.size <= largerThan { return false }
      guard olderThan >= 0 || newerThan >= 0 else { return true }
      guard let modified = facts.modified else { return false }
      let (age, overflow) = scanStart.subtractingReportingOverflow(modified)
      guard !overflow else { return false }
      return (olderThan < 0 || age > olderThan) && (newerThan < 0 || age < newerThan)
    }
  }
}

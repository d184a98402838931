/// What one rule or mark does to the two verdicts, and on what terms.
struct Operation: Sendable {
  /// What it sets in what we keep.
  let keep: Assignment
  /// What it sets in the platform's verdict.
  let platform: Assignment
  /// What it sets where it may not set a class or a purge.
  let limitedKeep: Assignment
  /// The same, for the platform's verdict.
  let limitedPlatform: Assignment
  /// How much it may do.
  let authority: Authority
  /// What must hold of the entry itself.
  let condition: EntryCondition

  /// How much an operation may do.
  enum Authority: Sendable {
    /// A rule: everything.
    case rule
    /// An attribute that somebody set: backup and restore anywhere, the rest on caches only.
    case attribute
    /// A file that may have been copied along: nothing that touches what is precious.
    case file
  }

  /// The operation of a rule.
  init(
    _ settings: Settings, _ platformSetting: PlatformSetting, condition: EntryCondition,
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

  /// Whether it sets the same for every entry that its pattern means.
  var isUnconditional: Bool { condition.isEmpty && authority == .rule }

  /// Sets its values, as far as it may.
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

  /// How much of a mark counts for data of a class.
  enum Reach {
    case full
    case limited
    case none
  }

  func reach(_ dataClass: DataClass, belowCache: Bool) -> Reach {
    if authority == .rule || dataClass.yieldsToMarks(belowCache: belowCache) { return .full }
    return authority == .file && dataClass.isPrecious ? .none : .limited
  }
}

/// What must hold of an entry itself for a rule, besides its path.
struct EntryCondition: Sendable, Hashable {
  /// The types, a bit each.
  var types = EntryType.anyMask
  /// More bytes than this, and no directory; -1 for any size.
  var largerThan: Int64 = -1
  /// Changed longer ago than these seconds; -1 for any.
  var olderThan: Int64 = -1
  /// Changed less long ago than these seconds; -1 for any.
  var newerThan: Int64 = -1

  init() {}

  init(_ conditions: Conditions) {
    types = conditions.typeMask
    if let limit = conditions.largerThan {
      largerThan = limit
      types &= ~EntryType.bit(.directory)
    }
    olderThan = conditions.olderThan ?? -1
    newerThan = conditions.newerThan ?? -1
  }

  var isEmpty: Bool { types == EntryType.anyMask && !isDynamic }

  /// Whether the type alone does not decide.
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

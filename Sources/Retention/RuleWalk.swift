internal import ArchiveStore
internal import SystemIO

/// Applies the rules to the snapshots of a group, one after another, the newest first.
///
/// As in restic, a rule with counts or a span left also keeps the oldest snapshot of the group, so
/// that a young history keeps its beginning.
struct RuleWalk {
  private let rules: RetentionRules
  private let calendar: RetentionCalendar
  private let start: Timestamp?
  private var last: RetentionRules.Count
  private var counts: [CountRule]
  private var spans: [SpanRule]

  private struct CountRule {
    let period: Period
    var count: RetentionRules.Count
    /// The slot of the last snapshot that the rule kept.
    var slot: Int?
  }

  private struct SpanRule {
    let period: Period
    let span: RetentionSpan
    let start: Timestamp
    var slot: Int?
  }

  /// Begins with the newest snapshot's time, from which spans count.
  init(_ rules: RetentionRules, newest: Timestamp, calendar: RetentionCalendar) {
    self.rules = rules
    self.calendar = calendar
    last = rules.last
    start = rules.within.flatMap {
      $0.isZero ? nil : calendar.start(of: $0, endingAt: newest)
    }
    counts = Period.allCases.compactMap { period in
      rules.counts[period].map { CountRule(period: period, count: $0) }
    }
    spans = Period.allCases.compactMap { period in
      guard let span = rules.withinPeriods[period], !span.isZero else { return nil }
      let start = calendar.start(of: span, endingAt: newest)
      return SpanRule(period: period, span: span, start: start)
    }
  }

  /// Returns the rules that keep the next snapshot; empty if none does.
  mutating func reasons(for head: SnapshotHead, isOldest: Bool) -> [KeepReason] {
    var reasons = rules.tags.filter { $0.matches(head) }.map { KeepReason.tags($0) }
    if let within = rules.within, let start, head.time > start { reasons.append(.within(within)) }
    if last.isSet {
      last.decrement()
      reasons.append(.last)
    }
    let slots = calendar.slots(of: head.time)
    for index in counts.indices where counts[index].count.isSet {
      let slot = slots?[counts[index].period]
      guard let isNew = Self.keeps(slot, after: counts[index].slot, isOldest) else { continue }
      counts[index].slot = slot
      counts[index].count.decrement()
      reasons.append(.period(counts[index].period, isOldest: !isNew))
    }
    for index in spans.indices where head.time > spans[index].start {
      let (period, span) = (spans[index].period, spans[index].span)
      let slot = slots?[period]
      guard let isNew = Self.keeps(slot, after: spans[index].slot, isOldest) else { continue }
      spans[index].slot = slot
      reasons.append(.periodWithin(period, span, isOldest: !isNew))
    }
    if isOldest, rules.keepsOldest { reasons.append(.oldest) }
    return reasons
  }

  /// Returns whether a snapshot begins a new slot, or nil if it neither does nor is the oldest. An
  /// unknown slot is a new one.
  private static func keeps(_ slot: Int?, after last: Int?, _ isOldest: Bool) -> Bool? {
    let isNew = slot == nil || slot != last
    return isNew || isOldest ? isNew : nil
  }
}

package import ArchiveStore
package import SystemIO

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
    /// The slots of the snapshots that the rule kept. If the clock jumped back and forth, snapshots
    /// of one slot may not be adjacent.
    var slots: Set<Int> = []
  }

  private struct SpanRule {
    let period: Period
    let span: RetentionSpan
    let start: Timestamp
    var slots: Set<Int> = []
  }

  /// Begins with the newest snapshot's time, from which spans are measured.
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
      guard let isNew = Self.keeps(slot, besides: counts[index].slots, isOldest) else { continue }
      if let slot { counts[index].slots.insert(slot) }
      counts[index].count.decrement()
      reasons.append(.period(counts[index].period, isOldest: !isNew))
    }
    for index in spans.indices where head.time > spans[index].start {
      let (period, span) = (spans[index].period, spans[index].span)
      let slot = slots?[period]
      guard let isNew = Self.keeps(slot, besides: spans[index].slots, isOldest) else { continue }
      if let slot { spans[index].slots.insert(slot) }
      reasons.append(.periodWithin(period, span, isOldest: !isNew))
    }
    if isOldest, rules.keepsOldest { reasons.append(.oldest) }
    return reasons
  }

  /// Returns whether a snapshot begins a new slot, or nil if it does not and is not the oldest. An
  /// unknown slot counts as a new one.
  private static func keeps(_ slot: Int?, besides kept: Set<Int>, _ isOldest: Bool) -> Bool? {
    let isNew = slot.map { !kept.contains($0) } ?? true
    return isNew || isOldest ? isNew : nil
  }
}

/// The rules that determine which snapshots of a group are kept. A snapshot is kept if any rule
/// keeps it.
package struct RetentionRules: Hashable, Sendable {
  /// The number of newest snapshots to keep.
  package var last = Count.number(0)
  /// The number of newest slots of each period whose newest snapshot is kept.
  package var counts: [Period: Count] = [:]
  /// The span before the newest snapshot in which all are kept.
  package var within: RetentionSpan?
  /// The span before the newest snapshot in which the newest of each slot is kept.
  package var withinPeriods: [Period: RetentionSpan] = [:]
  /// Snapshots with all tags of one of these lists are kept.
  package var tags: [TagList] = []
  /// Whether the oldest snapshot is kept.
  package var keepsOldest = false

  /// Creates rules that keep nothing.
  package init() {}

  /// Whether no rule that selects snapshots is set. Keeping the oldest only adds to other rules.
  package var isEmpty: Bool {
    let spans = (within.map { [$0] } ?? []) + withinPeriods.values
    return !last.isSet && !counts.values.contains(where: \.isSet) && tags.isEmpty
      && spans.allSatisfy(\.isZero)
  }
}

extension RetentionRules {
  /// The number of snapshots or slots that a rule keeps.
  package enum Count: Hashable, Sendable, CustomStringConvertible {
    case unlimited
    case number(Int)

    /// Parses `unlimited` or a number that is at least 0. Returns nil for any other text.
    package init?(_ text: String) {
      if text == "unlimited" {
        self = .unlimited
      } else if text.allSatisfy({ $0.isASCII && $0.isNumber }), let number = Int(text) {
        self = .number(number)
      } else {
        return nil
      }
    }

    package var description: String {
      switch self {
      case .unlimited: "unlimited"
      case .number(let number): "\(number)"
      }
    }

    /// Whether more snapshots can be kept. 0 means that the rule is not set.
    var isSet: Bool { self != .number(0) }

    /// Counts a kept snapshot.
    mutating func decrement() {
      if case .number(let number) = self { self = .number(number - 1) }
    }
  }
}

/// Tags that a snapshot must have all of; an empty list matches snapshots without tags.
package struct TagList: Hashable, Sendable, CustomStringConvertible {
  package let tags: [String]

  /// Parses tags separated by commas; the empty text is the empty list. Returns nil if one of
  /// several tags is empty.
  package init?(_ text: String) {
    tags =
      text.isEmpty
      ? []
      : text.split(separator: ",", omittingEmptySubsequences: false).map {
        String($0)
      }
    if tags.contains(where: \.isEmpty) { return nil }
  }

  /// Whether the list matches the tags of a snapshot.
  package func matches(_ head: SnapshotHead) -> Bool {
    tags.isEmpty ? head.tags.isEmpty : tags.allSatisfy(head.tags.contains)
  }

  package var description: String { tags.joined(separator: ",") }
}

/// A period of the calendar whose newest snapshot can be kept.
package enum Period: String, CaseIterable, Sendable, Hashable {
  case hourly
  case daily
  /// A week of ISO 8601, from Monday to Sunday.
  case weekly
  case monthly
  case yearly
}

/// The Gregorian calendar in a time zone.
package struct RetentionCalendar: Sendable {
  private let local: @Sendable (Timestamp) -> CalendarTime?
  private let timestamp: @Sendable (CalendarTime) -> Timestamp?

  /// The calendar in the host's time zone.
  package static let host = RetentionCalendar(local: \.local, timestamp: { Timestamp($0) })

  /// Creates the calendar of a time zone.
  ///
  /// - Parameters:
  ///   - local: returns the local time, or nil if it cannot be represented.
  ///   - timestamp: converts a local time, whose parts may be too large or too small.
  package init(
    local: @escaping @Sendable (Timestamp) -> CalendarTime?,
    timestamp: @escaping @Sendable (CalendarTime) -> Timestamp?
  ) {
    self.local = local
    self.timestamp = timestamp
  }

  /// Returns the beginning of a span that ends at a time: the same local time of day on the day
  /// that is the given years, months and days earlier, minus the hours. A day that does not exist
  /// continues into the next month, so one month before March 31 is March 3 (or 2).
  func start(of span: RetentionSpan, endingAt end: Timestamp) -> Timestamp {
    guard let day = local(end),
      var start = timestamp(
        CalendarTime(
          year: day.year - span.years, month: day.month - span.months, day: day.day - span.days,
          hour: day.hour, minute: day.minute, second: day.second))
    else { return Timestamp(seconds: .min) }
    start.seconds -= Int64(span.hours) * 3600
    start.nanoseconds = end.nanoseconds
    return start
  }

  /// Returns the slots of a time, or nil if its local time cannot be represented.
  func slots(of time: Timestamp) -> Slots? { local(time).flatMap { Slots($0) } }
}

extension RetentionCalendar {
  /// The numbers of the hour, day, week, month and year that contain a local time. Times of the
  /// same slot have the same number.
  struct Slots: Hashable {
    private let time: CalendarTime
    /// The days since 1970-01-01.
    private let day: Int

    fileprivate init?(_ time: CalendarTime) {
      let date = CalendarTime(
        year: time.year, month: time.month, day: time.day, hour: 0, minute: 0, second: 0)
      guard let midnight = Timestamp(date, isUTC: true) else { return nil }
      self.time = time
      day = Int(midnight.seconds / 86_400)
    }

    subscript(_ period: Period) -> Int {
      switch period {
      // The hour that is repeated when the clocks go back is one slot.
      case .hourly: day * 24 + time.hour
      case .daily: day
      case .weekly: week
      case .monthly: time.year * 12 + time.month
      case .yearly: time.year
      }
    }

    /// The weeks since the one that contains 1970-01-01, a Thursday.
    private var week: Int {
      let (quotient, remainder) = (day + 3).quotientAndRemainder(dividingBy: 7)
      return remainder < 0 ? quotient - 1 : quotient
    }
  }
}

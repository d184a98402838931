package import SystemIO

/// A period of the calendar of which the newest snapshot can be kept.
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
  /// counts on into the next month, so one month before March 31 is March 3 (or 2).
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
  /// The numbers of the hour, day, week, month and year that contain a local time. Times of the same
  /// slot have the same number.
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

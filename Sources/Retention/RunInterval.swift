package import SystemIO

/// The time between two runs of a command that more frequent jobs start.
package enum RunInterval: String, CaseIterable, Sendable, Hashable {
  case daily
  case weekly
  case monthly

  /// Whether a run is due: there was none, or the day of the last one is at least one day, seven
  /// days or one month before today. Hours do not count, so that a nightly job runs even if it
  /// started a few minutes later the night before.
  ///
  /// - Parameter last: the time of the last run. A time in the future comes from a clock that was
  ///   ahead, and counts as none.
  package func isDue(
    last: Timestamp?, now: Timestamp, calendar: RetentionCalendar = .host
  ) -> Bool {
    // A time that the calendar cannot represent counts as none, too.
    guard let last, last <= now, let span, let day = calendar.slots(of: last),
      let limit = calendar.slots(of: calendar.start(of: span, endingAt: now))
    else { return true }
    return day[.daily] <= limit[.daily]
  }

  private var span: RetentionSpan? {
    switch self {
    case .daily: RetentionSpan("1d")
    case .weekly: RetentionSpan("7d")
    case .monthly: RetentionSpan("1m")
    }
  }
}

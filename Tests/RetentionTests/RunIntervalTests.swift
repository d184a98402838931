import Foundation
import Retention
import SystemIO
import Testing

/// Whether a command that runs at most daily, weekly or monthly is due.
struct RunIntervalTests {
  @Test(arguments: [
    // The last run, the current time, and whether a daily, a weekly and a monthly run is due.
    ("2026-01-10T02:17:00", "2026-01-10T02:17:00", false, false, false),
    ("2026-01-10T02:17:00", "2026-01-10T23:59:59", false, false, false),
    // A job that began earlier at night than the last one.
    ("2026-01-10T02:17:00", "2026-01-11T01:50:00", true, false, false),
    ("2026-01-10T02:17:00", "2026-01-16T23:00:00", true, false, false),
    ("2026-01-10T02:17:00", "2026-01-17T01:00:00", true, true, false),
    ("2026-01-10T02:17:00", "2026-02-09T23:00:00", true, true, false),
    ("2026-01-10T02:17:00", "2026-02-10T01:00:00", true, true, true),
    // February does not have this day.
    ("2026-01-31T02:00:00", "2026-02-28T02:00:00", true, true, false),
    ("2026-01-31T02:00:00", "2026-03-01T02:00:00", true, true, true),
    ("2025-12-31T02:00:00", "2026-01-01T01:00:00", true, false, false),
    // The last run is in the future, because the clock was an hour or a year ahead.
    ("2026-01-10T03:17:00", "2026-01-10T02:17:00", true, true, true),
    ("2027-01-10T02:17:00", "2026-01-10T02:17:00", true, true, true),
  ])
  func runIsDueAfterDays(
    _ last: String, _ now: String, _ daily: Bool, _ weekly: Bool, _ monthly: Bool
  ) throws {
    for (interval, expected) in zip(RunInterval.allCases, [daily, weekly, monthly]) {
      #expect(
        interval.isDue(last: try Timestamp(last), now: try Timestamp(now), calendar: .utc)
          == expected, "\(interval)")
    }
  }

  @Test func runWithoutALastOneIsDue() throws {
    let now = try Timestamp("2026-01-10T02:17:00")
    #expect(RunInterval.allCases.allSatisfy { $0.isDue(last: nil, now: now) })
    let extremes = [Timestamp(seconds: .min), Timestamp(seconds: .max)]
    #expect(RunInterval.allCases.allSatisfy { $0.isDue(last: extremes[0], now: now) })
    #expect(RunInterval.allCases.allSatisfy { $0.isDue(last: now, now: extremes[1]) })
    #expect(RunInterval.allCases.allSatisfy { $0.isDue(last: extremes[1], now: now) })
  }

  /// Days are those of the host's time zone: 23:30 and 0:30 are on two days in UTC, but on one in
  /// Tokyo.
  @Test func daysFollowTheTimeZone() throws {
    let (last, now) = try (Timestamp("2026-01-10T23:30:00"), Timestamp("2026-01-11T00:30:00"))
    let tokyo = RetentionCalendar(try #require(TimeZone(identifier: "Asia/Tokyo")))
    #expect(RunInterval.daily.isDue(last: last, now: now, calendar: .utc))
    #expect(!RunInterval.daily.isDue(last: last, now: now, calendar: tokyo))
  }
}

import SystemIO
import Testing

@testable import SandboxCommands

/// The next run of a cron job by the clock of this host.
struct CronTimeTests {
  private static func local(
    _ year: Int, _ month: Int, _ day: Int, _ hour: Int, _ minute: Int, _ second: Int = 0
  ) -> Timestamp? {
    Timestamp(
      CalendarTime(
        year: year, month: month, day: day, hour: hour, minute: minute, second: second))
  }

  /// Times at midday, which daylight saving time does not affect. 2026-11-22 is a Sunday.
  @Test(arguments: [
    ("30 12 * * *", [2026, 11, 22, 12, 30]), ("14 13 * * *", [2026, 11, 23, 13, 14]),
    ("15 13 * * *", [2026, 11, 22, 13, 15]), ("*/20 * * * *", [2026, 11, 22, 12, 20]),
    ("0 12-14 * * mon", [2026, 11, 23, 12, 0]), ("0 12 * * 7", [2026, 11, 29, 12, 0]),
    ("0 12 1 * *", [2026, 12, 1, 12, 0]), ("0 12 29 2 *", [2028, 2, 29, 12, 0]),
    ("1,5-9/4,50 12 * jan,DEC *", [2026, 12, 1, 12, 1]),
    // If both the day of month and the day of week are restricted, one match is sufficient. With a
    // star, both must match.
    ("0 12 28 * wed", [2026, 11, 25, 12, 0]), ("0 12 */7 * wed", [2027, 9, 1, 12, 0]),
  ])
  func nextMinuteIsFound(_ fields: String, _ next: [Int]) throws {
    let now = try #require(Self.local(2026, 11, 22, 12, 14, 59))
    let shifted = fields == "14 13 * * *" ? try #require(Self.local(2026, 11, 22, 13, 14)) : now
    let time = try #require(CronTime(fields))
    #expect(time.next(after: shifted) == Self.local(next[0], next[1], next[2], next[3], next[4]))
  }

  @Test func wordsStandForFields() throws {
    let now = try #require(Self.local(2026, 11, 22, 12, 14))
    #expect(CronTime("@hourly")?.next(after: now) == Self.local(2026, 11, 22, 13, 0))
    #expect(CronTime("@monthly")?.next(after: now) == Self.local(2026, 12, 1, 0, 0))
    #expect(CronTime("@yearly")?.next(after: now) == Self.local(2027, 1, 1, 0, 0))
  }

  @Test func impossibleDayHasNoNextRun() throws {
    let now = try #require(Self.local(2026, 11, 22, 12, 14))
    #expect(try #require(CronTime("0 0 30 2 *")).next(after: now) == nil)
  }

  @Test(arguments: [
    "@reboot", "", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *",
    "* * * 13 *", "* * * * 8", "5-1 * * * *", "*/0 * * * *", "5/2 * * * *", "1-2-3 * * * *",
    "a * * * *", "1,,2 * * * *",
  ])
  func invalidFieldsAreRefused(_ fields: String) { #expect(CronTime(fields) == nil) }
}

import ArchiveStore
import Retention
import SystemIO
import Testing

/// The results of restic 0.18 for the history and the policies in its own tests
/// (`internal/data/snapshot_policy_test.go`, BSD-2-Clause) and in its manual
/// (`doc/060_forget.rst`).
struct ResticCasesTests {
  /// The days of each month that have snapshots, the newest first. The time is 10:20:30 unless
  /// given.
  private static let history = [
    (
      "2016-01",
      "18@12:02:03 12@21:08:03 12@21:02:03 9@21:02:03 8@20:02:03 7@10:02:03 6@08:02:03 5@09:02:03 4@16:23:03 4@12:30:03 4@12:28:03 4@12:24:03 4@12:23:03 4@11:23:03 4@10:23:03 3@07:02:03 1@07:08:03 1@01:03:03 1@01:02:03"
    ),
    ("2015-11", "22 21 20 18 15 13@10:20:30.1 13 12 10 8"),
    ("2015-10", "22 22 22 22 22 20 11 10 9 8 6 5 2 1"),
    ("2015-09", "22 20 11 10 9 8 6 5 2 1"),
    ("2015-08", "22 21 20 18 15 13@10:20:30.1 13 12 10 8"),
    ("2014-11", "22 21 20 18 15 13@10:20:30.1 13 12 10 8"),
    ("2014-10", "22 20 11 10 9 8 6 5 2 1"),
    ("2014-09", "22 20 11 10 9 8 6 5 2 1"),
    ("2014-08", "22 21 20 18 15 13@10:20:30.1 13 12 10 8"),
  ]
  /// The positions of the snapshots with tags, counted from the newest.
  private static let tags = ["foo": "31-33 67 69-82", "bar": "31-33 67-68"]

  /// Rules, and the positions of the snapshots that are kept for each reason.
  static let cases = [
    ("", ""),
    ("last 10", "last: 0-9"),
    ("last 15", "last: 0-14"),
    ("last 99", "last: 0-98"),
    ("last 200", "last: 0-102"),
    ("hourly 20", "hourly: 0-1 3-9 13-17 19-24"),
    ("daily 3", "daily: 0-1 3"),
    ("daily 10", "daily: 0-1 3-8 15-16"),
    ("daily 30", "daily: 0-1 3-8 15-16 19-24 26-29 34-43"),
    ("last 5; daily 5", "last: 0-4; daily: 0-1 3-5"),
    ("last 2; daily 10", "last: 0-1; daily: 0-1 3-8 15-16"),
    ("weekly 2", "weekly: 0-1"),
    ("weekly 4", "weekly: 0-1 3 15"),
    ("daily 3; weekly 4", "daily: 0-1 3; weekly: 0-1 3 15"),
    ("monthly 6", "monthly: 0 19 29 43 53 63"),
    ("daily 2; weekly 2; monthly 6", "daily: 0-1; weekly: 0-1; monthly: 0 19 29 43 53 63"),
    ("yearly 10", "yearly: 0 19 63; oldest yearly: 102"),
    (
      "daily 7; weekly 2; monthly 3; yearly 10",
      "daily: 0-1 3-7; weekly: 0-1; monthly: 0 19 29; yearly: 0 19 63; oldest yearly: 102"
    ),
    ("tag foo", "tag foo: 31-33 67 69-82"),
    ("tag foo,bar", "tag foo,bar: 31-33 67"),
    ("tag foo; tag bar", "tag foo: 31-33 67 69-82; tag bar: 31-33 67-68"),
    ("within 1d", "within 1d: 0"),
    ("within 2d", "within 2d: 0"),
    ("within 7d", "within 7d: 0-2"),
    ("within 1m", "within 1m: 0-18"),
    ("within 1m14d", "within 1m14d: 0-18"),
    ("within 1y1d1m", "within 1y1m1d: 0-62"),
    ("within 13d23h", "within 13d23h: 0-8"),
    ("within 2m2h", "within 2m2h: 0-22"),
    ("within 1y2m3d3h", "within 1y2m3d3h: 0-67"),
    ("within-hourly 1y2m3d3h", "hourly within 1y2m3d3h: 0-1 3-9 13-17 19-24 26-29 34-58 60-67"),
    ("within-daily 1y2m3d3h", "daily within 1y2m3d3h: 0-1 3-8 15-16 19-24 26-29 34-58 60-67"),
    (
      "within-weekly 1y2m3d3h",
      "weekly within 1y2m3d3h: 0-1 3 15 19 23 28-29 35 41 43-45 49 53 57 62-63 67"
    ),
    ("within-monthly 1y2m3d3h", "monthly within 1y2m3d3h: 0 19 29 43 53 63"),
    ("within-yearly 1y2m3d3h", "yearly within 1y2m3d3h: 0 19 63"),
    (
      "within 1h; within-hourly 1d; within-daily 7d; within-weekly 1m; within-monthly 1y; within-yearly 9999y",
      "within 1h: 0; hourly within 1d: 0; daily within 7d: 0-1; weekly within 1m: 0-1 3 15; monthly within 1y: 0 19 29 43 53; yearly within 9999y: 0 19 63; oldest yearly within 9999y: 102"
    ),
    ("last unlimited", "last: 0-102"),
    (
      "last unlimited; hourly unlimited",
      "last: 0-102; hourly: 0-1 3-9 13-17 19-24 26-29 34-58 60-68 70-98 100-102"
    ),
    ("hourly unlimited", "hourly: 0-1 3-9 13-17 19-24 26-29 34-58 60-68 70-98 100-102"),
    (
      "daily 3; weekly 2; monthly unlimited; yearly unlimited",
      "daily: 0-1 3; weekly: 0-1; monthly: 0 19 29 43 53 63 73 83 93; yearly: 0 19 63; oldest monthly: 102; oldest yearly: 102"
    ),
  ]

  /// The snapshots, the newest first.
  private static func heads() throws -> [SnapshotHead] {
    let times = try history.flatMap { month, days in
      try days.split(separator: " ").map { day in
        let parts = day.split(separator: "@")
        let number = parts[0].count == 1 ? "0\(parts[0])" : String(parts[0])
        return try Timestamp("\(month)-\(number)T\(parts.count > 1 ? parts[1] : "10:20:30")")
      }
    }
    return times.enumerated().map { position, time in
      let tags = ["foo", "bar"].filter { positions(self.tags[$0] ?? "").contains(position) }
      return .made(position, at: time, sequence: UInt64(times.count - position), tags: tags)
    }
  }

  private static func positions(_ text: some StringProtocol) -> [Int] {
    text.split(separator: " ").flatMap { part in
      let ends = part.split(separator: "-").compactMap { Int($0) }
      return Array(ends[0]...(ends.last ?? ends[0]))
    }
  }

  @Test(arguments: cases.indices)
  func rulesKeepTheSnapshotsThatResticKeeps(_ index: Int) throws {
    let (rules, outcome) = Self.cases[index]
    let heads = try Self.heads()
    var terms = RetentionTerms(
      try RetentionRules(rules), now: try Timestamp("2017-01-01T00:00:00"), calendar: .utc,
      retain: { _ in nil })
    terms.mayEmptyGroups = true
    let entries = RetentionPlan(heads.shuffled(), pins: [], terms).entries
    var found: [String: [Int]] = [:]
    for (position, head) in heads.enumerated() {
      for reason in try #require(entries[head.id]).reasons {
        found[reason.description, default: []].append(position)
      }
    }
    var expected: [String: [Int]] = [:]
    for part in outcome.split(separator: "; ") {
      let words = part.split(separator: ": ")
      expected[String(words[0])] = Self.positions(words[1])
    }
    #expect(found == expected, "\(rules)")
  }

  // MARK: - The manual

  /// Two weeks of backups on weekdays at 11:00, on Fridays also at 23:00, except for one Wednesday.
  private static let weeks = [
    "2025-04-21T11", "2025-04-22T11", "2025-04-23T11", "2025-04-24T11", "2025-04-25T11",
    "2025-04-25T23", "2025-04-28T11", "2025-04-29T11", "2025-05-01T11", "2025-05-02T11",
    "2025-05-02T23",
  ]

  @Test(arguments: [
    ("daily 5", [5, 6, 7, 8, 10]), ("within-daily 7d", [6, 7, 8, 10]),
  ])
  func weekdaysAreKeptAsInTheManual(_ rules: String, _ kept: [Int]) throws {
    let heads = try Self.weeks.enumerated().map { position, time in
      SnapshotHead.made(position, at: try Timestamp(time + ":00:00"))
    }
    let terms = RetentionTerms(
      try RetentionRules(rules), now: try Timestamp("2025-05-03T00:00:00"), calendar: .utc,
      retain: { _ in nil })
    let entries = RetentionPlan(heads, pins: [], terms).entries
    #expect(heads.indices.filter { entries[heads[$0].id]?.isKept == true } == kept)
  }

  /// "Suppose you make one backup every day for 100 years": this keeps 7 days, 4 more weeks (the
  /// last day is a Sunday), 11 more months, and 73 more years. The last day of 2025 is also the
  /// last of a month.
  @Test func hundredYearsAreKeptAsInTheManual() throws {
    let start = try Timestamp("1926-03-16T12:00:00")
    let heads = (0..<36_525).map { SnapshotHead.made($0, at: start + Int64($0) * day) }
    let terms = RetentionTerms(
      try RetentionRules("daily 7; weekly 5; monthly 12; yearly 75"),
      now: try Timestamp("2030-01-01T00:00:00"), calendar: .utc, retain: { _ in nil })
    let kept = RetentionPlan(heads, pins: [], terms).groups[0].entries.filter(\.isKept)
    let first = { (reason: String) in
      kept.count { $0.reasons.first?.description == reason }
    }
    #expect(first("daily") == 7 && first("weekly") == 4)
    #expect(first("monthly") == 11 && first("yearly") == 73)
    #expect(kept.count == 7 + 4 + 11 + 73)
  }

  @Test func emptyTagMatchesUntaggedSnapshots() throws {
    let now = try Timestamp("2026-01-01T00:00:00")
    let heads = [
      SnapshotHead.made(0, at: now + -2 * day), .made(1, at: now + -day, tags: ["x"]),
    ]
    let terms = RetentionTerms(
      try RetentionRules("tag "), now: now, calendar: .utc, retain: { _ in nil })
    let plan = RetentionPlan(heads, pins: [], terms)
    #expect(plan.removed == [heads[1].id])
    #expect(plan.entries[heads[0].id]?.reasons.map(\.description) == ["no tags"])
  }
}

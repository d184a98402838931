import ArchiveStore
import Codecs
import Foundation
import Retention
import SystemIO
import TestSupport
import Testing

/// The plan in specific cases: clocks, groups, automatic snapshots, pins, and its cost.
struct PlanTests {
  private let now: Timestamp

  init() throws { now = try Timestamp("2026-11-20T12:00:00") }

  private func terms(_ rules: String) throws -> RetentionTerms {
    RetentionTerms(
      try RetentionRules(rules), now: now, calendar: .utc, retain: { _ in 31 * day })
  }

  /// One snapshot a day, the newest of which is an hour old; `number` 0 is the oldest.
  private func days(_ count: Int, reason: Reason = .manual) -> [SnapshotHead] {
    (0..<count).map { (number: Int) -> SnapshotHead in
      let age = Int64(count - 1 - number) * day + hour
      return .made(number, at: now + -age, reason: reason)
    }
  }

  private func plan(
    _ heads: [SnapshotHead], _ rules: String, pins: Set<SnapshotID> = []
  ) throws -> RetentionPlan {
    RetentionPlan(heads, pins: pins, try terms(rules))
  }

  // MARK: - Clocks

  @Test(arguments: [1, 3600, 365 * 86_400])
  func futureSnapshotIsKeptAndDoesNotCount(_ seconds: Int64) throws {
    let heads = days(60)
    let future = SnapshotHead.made(60, at: now + seconds)
    let without = try plan(heads, "last 3; within 10d")
    let with = try plan(heads + [future], "last 3; within 10d")
    #expect(with.removed == without.removed && without.removed.count == 50)
    #expect(with.entries[future.id]?.reasons == [.future])
    // It does not count when the group would be emptied.
    #expect(try plan([heads[0], future], "tag x").groups[0].isRefused)
  }

  /// The clock was set back by an hour or a year, so the last snapshot has an earlier time.
  @Test(arguments: [3600, 365 * 86_400])
  func newestSnapshotIsKeptIfTheClockWasSetBack(_ seconds: Int64) throws {
    let heads = days(60) + [SnapshotHead.made(60, at: now + -seconds)]
    let kept = try plan(heads, "last 1").entries.values.filter(\.isKept)
    #expect(kept.map(\.head.id) == [heads[60].id])
    // Spans are measured from the last snapshot, so its wrong time makes none of the others expire.
    let within = try plan(heads, "within 20d")
    #expect(within.removed.count <= 40)
    let daily = try plan(heads, "daily 10")
    #expect(daily.entries[heads[58].id]?.isKept == true)
  }

  /// The clock was a year ahead when one snapshot was made, long ago: its time has passed by now.
  @Test func wrongTimeInThePastAffectsNoOtherDay() throws {
    let heads = days(400)
    var wrong = heads
    wrong[20] = SnapshotHead.made(20, at: heads[20].time + year)
    let plan = try plan(wrong, "daily 7")
    #expect(plan.entries.values.filter(\.isKept).count == 7)
    for head in heads.suffix(7) { #expect(plan.entries[head.id]?.isKept == true) }
    let within = try self.plan(wrong, "within-daily 1m")
    for head in heads.suffix(30) { #expect(within.entries[head.id]?.isKept == true) }
  }

  /// The clock is wrong at each start of the machine, until it is set: the wrong day counts once.
  @Test func aClockThatIsRepeatedlyWrongUsesOneDay() throws {
    let right = days(14)
    let heads = right.enumerated().flatMap { number, head in
      [
        SnapshotHead.made(2 * number, at: right[0].time + -5 * year),
        SnapshotHead.made(2 * number + 1, at: head.time),
      ]
    }
    for rule in ["daily 7", "within-daily 1y"] {
      let kept = try plan(heads, rule).entries.filter(\.value.isKept).keys
      let expected = heads.enumerated().filter { number, _ in
        rule == "daily 7" ? number > 16 && number % 2 == 1 || number == 26 : number % 2 == 1
      }
      #expect(Set(expected.map(\.element.id)).isSubset(of: kept), "\(rule)")
      #expect(kept.count <= expected.count + 1, "\(rule): \(kept.count)")
    }
  }

  @Test func repeatedHourIsOneSlot() throws {
    // In Berlin clocks went back from 3:00 to 2:00 on 2026-10-25 at 1:00 UTC.
    let times = try ["2026-10-25T00:30:00", "2026-10-25T01:30:00"].map { try Timestamp($0) }
    let heads = times.enumerated().map { SnapshotHead.made($0, at: $1) }
    for (zone, removed) in [("Europe/Berlin", 1), ("UTC", 0)] {
      var terms = try terms("hourly 5")
      terms.calendar = RetentionCalendar(try #require(TimeZone(identifier: zone)))
      // The oldest of the three is always kept.
      let all = [SnapshotHead.made(9, at: times[0] + -day, sequence: 0)] + heads
      #expect(RetentionPlan(all, pins: [], terms).removed.count == removed, "\(zone)")
    }
  }

  // MARK: - Groups

  @Test func rulesApplyToEachGroup() throws {
    let heads = (0..<12).map { number in
      SnapshotHead.made(
        number, at: now + Int64(number - 20) * day, tags: number % 3 == 0 ? ["x"] : [],
        scope: number % 2 == 0 ? .device : .apps(["b", "a"]), device: number < 6 ? "a" : "b")
    }
    for (names, groups) in [
      ("device,scope", 4), ("device", 2), ("scope", 2), ("", 1), ("tags", 2), ("tag,device", 4),
      ("device,scope,tags", 8),
    ] {
      var terms = try terms("last 1")
      terms.grouping = try #require(SnapshotGrouping(names))
      let plan = RetentionPlan(heads, pins: [], terms)
      #expect(plan.groups.count == groups, "\(names)")
      #expect(plan.groups.allSatisfy { $0.kept == 1 })
    }
    #expect(SnapshotGrouping("device,colour") == nil)
  }

  /// Machines that were cloned have the same machine ID, so only their names differ.
  @Test func rulesApplyToEachHostOfAMachineIdentity() throws {
    func heads(of device: String) -> [SnapshotHead] {
      (0..<6).map { number in
        .made(
          number, at: now + Int64(number - 20) * day, device: device,
          host: number % 2 == 0 ? "original" : "clone")
      }
    }
    let machine = "place:0123:folder:/home"
    for (device, names, groups) in [
      (machine, nil, 2), (machine, "device,scope", 1), (machine, "host", 2),
      ("udid:0123", nil, 1), ("udid:0123", "device,host", 1), ("udid:0123", "host", 2),
    ] as [(String, String?, Int)] {
      var terms = try terms("last 1")
      if let names { terms.grouping = try #require(SnapshotGrouping(names)) }
      let plan = RetentionPlan(heads(of: device), pins: [], terms)
      #expect(plan.groups.count == groups, "\(device) \(names ?? "")")
      #expect(plan.groups.allSatisfy { $0.kept == 1 })
      // A second run removes nothing more.
      let kept = heads(of: device).filter { plan.kept.contains($0.id) }
      #expect(RetentionPlan(kept, pins: [], terms).removed.isEmpty)
    }
  }

  @Test func groupIsNeverEmptied() throws {
    let heads = days(5)
    let plan = try plan(heads, "tag never")
    #expect(plan.removed.isEmpty && plan.groups[0].isRefused)
    #expect(plan.entries.values.allSatisfy { $0.reasons == [.refused] })
    var terms = try terms("tag never")
    terms.mayEmptyGroups = true
    #expect(RetentionPlan(heads, pins: [], terms).removed.count == 5)
    // The pinned snapshot remains, so nothing is refused.
    let pinned = RetentionPlan(heads, pins: [heads[2].id], try self.terms("tag never"))
    #expect(pinned.removed.count == 4 && !pinned.groups[0].isRefused)
  }

  /// Anyone who can write to the store can add snapshots with any time and sequence.
  @Test(arguments: ["last 3", "daily 3", "within 2d"])
  func unacceptedSnapshotsDoNotRemoveOthers(_ rules: String) throws {
    let heads = days(10)
    let ids = Set(heads.map(\.id))
    let added = (10..<30).map { number in
      SnapshotHead.made(number, at: now + -Int64(number), sequence: UInt64(900 + number))
    }
    let without = try plan(heads, rules)
    var terms = try self.terms(rules)
    terms.isAccepted = { ids.contains($0.id) }
    let with = RetentionPlan(heads + added, pins: [], terms)
    #expect(without.removed.count >= 7)
    #expect(Set(with.removed).intersection(ids) == Set(without.removed))
    #expect(with.groups.count == 2)
    // The rules also apply to their own group.
    #expect(with.groups[1].kept > 0)
  }

  // MARK: - Automatic and pinned snapshots

  @Test func automaticSnapshotsFollowThePolicy() throws {
    for reason in [Reason.preUpdate, .preRestore, .preRollback, .uninstall] {
      let heads = days(40, reason: reason) + [SnapshotHead.made(50, at: now + -90 * day)]
      let plan = try plan(heads, "last 1")
      // 31 of the 40 are younger than 31 days.
      #expect(plan.removed.count == 9, "\(reason)")
      #expect(plan.entries[heads[40].id]?.reasons == [.last])
      #expect(plan.entries[heads[39].id]?.reasons == [.retain(seconds: 31 * day)])
    }
    // They may all expire, and do not count for rules.
    #expect(
      try plan([.made(0, at: now + -99 * day, reason: .preUpdate)], "last 9").removed.count == 1)
    var terms = try terms("last 1")
    terms.retain = { _ in nil }
    let unknown = RetentionPlan(days(3, reason: .preUpdate), pins: [], terms)
    #expect(unknown.entries.values.allSatisfy { $0.reasons == [.retainUnknown] })
  }

  @Test func pinnedSnapshotsStay() throws {
    let heads = days(10) + [SnapshotHead.made(20, at: now + -99 * day, reason: .uninstall)]
    let pins: Set = [heads[3].id, heads[9].id, heads[10].id]
    let plan = try plan(heads, "last 2", pins: pins)
    #expect(plan.entries[heads[3].id]?.reasons == [.pinned])
    #expect(plan.entries[heads[9].id]?.reasons == [.last, .pinned])
    #expect(plan.entries[heads[10].id]?.reasons == [.pinned])
    #expect(plan.removed.count == 7)
  }

  @Test func oldestIsKeptOnRequest() throws {
    let heads = days(10)
    #expect(try plan(heads, "last 2").entries[heads[0].id]?.isKept == false)
    #expect(try plan(heads, "last 2; oldest").entries[heads[0].id]?.reasons == [.oldest])
  }

  /// `repair snapshots` keeps the original, and adds a copy with the same time and sequence.
  @Test func repairedSnapshotAndItsOriginalCountOnce() throws {
    let heads = days(4)
    let copy = SnapshotHead.made(10, at: heads[3].time, sequence: 4, original: heads[3].id)
    let second = SnapshotHead.made(11, at: heads[3].time, sequence: 4, original: copy.id)
    for rules in ["last 2", "daily 2", "hourly 2"] {
      let plan = try plan(heads + [copy, second], rules)
      #expect(Set(plan.removed) == [heads[0].id, heads[1].id], "\(rules)")
      let reasons = try [heads[3], copy, second].map { try #require(plan.entries[$0.id]).reasons }
      #expect(reasons[0] == reasons[1] && reasons[1] == reasons[2], "\(rules)")
    }
    // A pin keeps only its own snapshot.
    let old = SnapshotHead.made(12, at: heads[0].time, sequence: 1, original: heads[0].id)
    let pinned = try plan(heads + [old], "last 2", pins: [old.id])
    #expect(Set(pinned.removed) == [heads[0].id, heads[1].id])
    // An original elsewhere, or a cycle, which only a hostile repository contains, changes nothing.
    let foreign = SnapshotHead.made(13, at: now + -day, original: copy.id)
    #expect(try plan([heads[0], foreign], "last 2").removed.isEmpty)
    let ring = [1, 2].map { number in
      SnapshotHead.made(
        number, at: now + -day, original: SnapshotHead.made(3 - number, at: now).id)
    }
    #expect(try plan(ring, "last 1").entries.values.filter(\.isKept).isEmpty == false)
  }

  /// In another repository, the copy of a repaired snapshot refers to the repaired one, which is
  /// not there. That both belong to one backup is visible only in the source, the sequence and the
  /// time.
  @Test func copiesOfARepairAndOfItsOriginalCountOnce() throws {
    let heads = days(4)
    let elsewhere = SnapshotHead.made(20, at: now).id
    let repaired = heads.enumerated().map { number, head in
      SnapshotHead.made(
        10 + number, at: head.time, sequence: head.sequence, original: elsewhere)
    }
    for rules in ["last 2", "daily 2", "hourly 2"] {
      let plan = try plan(heads + repaired, rules)
      let expected = heads.prefix(2) + repaired.prefix(2)
      #expect(Set(plan.removed) == Set(expected.map(\.id)), "\(rules)")
    }
    // Snapshots without a sequence have only their time in common.
    let others = [1, 2].map { SnapshotHead.made($0, at: now + -day, sequence: 0) }
    #expect(try plan(others, "last 1").removed.count == 1)
    // Two copies of such a snapshot, however, have the same original.
    let twins = [1, 2].map {
      SnapshotHead.made($0, at: now + -day, sequence: 0, original: elsewhere)
    }
    let last = SnapshotHead.made(3, at: now, sequence: 0)
    #expect(try plan(twins, "last 1").removed.isEmpty)
    #expect(try Set(plan(twins + [last], "last 1").removed) == Set(twins.map(\.id)))
  }

  // MARK: - Values

  @Test(arguments: ["2y5m7d3h", "3h2y", "14d", "9999y", "0d", "1000000h"])
  func spanIsParsed(_ text: String) throws {
    let span = try #require(RetentionSpan(text))
    #expect(RetentionSpan(span.description) == span)
    #expect(span.isZero == (text == "0d"))
  }

  @Test(arguments: ["", "7", "d", "1w", "-1d", "1d1d", "1.5d", "1d 2h", "1000001y", "１d", "1D"])
  func invalidSpanIsRefused(_ text: String) { #expect(RetentionSpan(text) == nil) }

  @Test func countsAndTagsAreParsed() {
    #expect(RetentionRules.Count("unlimited") == .unlimited)
    #expect(RetentionRules.Count("12") == .number(12))
    for text in ["", "-1", "all", "1x", "99999999999999999999"] {
      #expect(RetentionRules.Count(text) == nil, "\(text)")
    }
    #expect(TagList("a,b")?.description == "a,b")
    #expect(TagList("a,,b") == nil && TagList(",") == nil && TagList("a,") == nil)
  }

  @Test func rulesThatKeepNothingAreEmpty() throws {
    for text in ["", "last 0", "daily 0; yearly 0", "within 0d; within-weekly 0y", "oldest"] {
      #expect(try RetentionRules(text).isEmpty, "\(text)")
    }
    for text in ["last 1", "monthly unlimited", "within 1h", "within-yearly 1y", "tag x", "tag "] {
      #expect(try !RetentionRules(text).isEmpty, "\(text)")
    }
  }

  // MARK: - Cost

  @Test func costGrowsAsTheNumberOfSnapshots() throws {
    let all =
      "last 5; hourly 24; daily 7; weekly 5; monthly 12; yearly 9; within 3d; "
      + "within-hourly 2d; within-daily 1m; within-weekly 1y; tag x"
    let growth = try Growth { count in
      let heads = (0..<count).map { number in
        SnapshotHead.made(
          number, at: now + Int64(number - count) * hour, tags: number % 9 == 0 ? ["x"] : [])
      }
      var terms = try terms(all)
      terms.calendar = .host
      return { #expect(RetentionPlan(heads, pins: [], terms).groups.count == 1) }
    }
    #expect(growth.isNLogN, "\(growth)")
    print("plans: \(growth)")
  }
}

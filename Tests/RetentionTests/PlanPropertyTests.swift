import ArchiveStore
import Codecs
import Foundation
import Retention
import SystemIO
import TestSupport
import Testing

/// The plan compared with a simple reference, for random histories, rules and time zones.
struct PlanPropertyTests {
  private static let zones = [
    "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe",
    "Pacific/Apia", "America/St_Johns",
  ]

  @Test func planEqualsThePlainReference() throws {
    var random = Seeded.fresh()
    for round in 0..<(Sampling.isWhole ? 10_000 : 500) {
      let scene = try Scene(using: &random)
      let plan = RetentionPlan(scene.heads, pins: scene.pins, scene.terms)
      let entries = plan.entries
      let expected = scene.reference()
      try #require(entries.count == scene.heads.count)
      for head in scene.heads {
        let found = Set(try #require(entries[head.id]).reasons.map(\.description))
        try #require(
          found == expected[head.id],
          "round \(round): \(scene.rules), \(scene.zone), \(head.time.rfc3339)")
      }
    }
  }

  /// A snapshot dated in the future does not affect the others, whatever its sequence.
  @Test func futureSnapshotsDoNotAffectOthers() throws {
    var random = Seeded.fresh()
    for _ in 0..<(Sampling.isWhole ? 5000 : 500) {
      let scene = try Scene(using: &random)
      let spans: [Int64] = [1, hour, day, year]
      let ahead = spans.randomElement(using: &random) ?? 1
      let sequence = UInt64.random(in: 0...40, using: &random)
      let future = SnapshotHead.made(
        -1, at: scene.terms.now + ahead, sequence: sequence, tags: ["a"])
      let with = RetentionPlan(scene.heads + [future], pins: scene.pins, scene.terms).entries
      #expect(with[future.id]?.reasons == [.future])
      let without = RetentionPlan(scene.heads, pins: scene.pins, scene.terms).entries
      for head in scene.heads {
        try #require(with[head.id]?.reasons == without[head.id]?.reasons)
      }
    }
  }
}

/// A random history with rules.
private struct Scene {
  let heads: [SnapshotHead]
  let pins: Set<SnapshotID>
  let terms: RetentionTerms
  let rules: String
  let zone: String
  private let ruleList: [(name: String, value: String)]
  private let groupsByDevice: Bool
  private let groupsByScope: Bool
  private let groupsByTags: Bool

  init(using random: inout Seeded) throws {
    let now = Timestamp(seconds: Int64.random(in: 1_000_000_000...1_900_000_000, using: &random))
    heads = Self.history(until: now, &random)
    pins = Set(heads.map(\.id).filter { _ in Int.random(in: 0..<20, using: &random) == 0 })
    ruleList = Self.rules(&random)
    rules = ruleList.map { "\($0.name) \($0.value)" }.joined(separator: "; ")
    zone = PlanPropertyTests.randomZone(&random)
    groupsByDevice = Bool.random(using: &random)
    groupsByScope = Bool.random(using: &random)
    groupsByTags = Int.random(in: 0..<4, using: &random) == 0
    let names = [
      groupsByDevice ? "device" : "", groupsByScope ? "scope" : "", groupsByTags ? "tags" : "",
    ]
    terms = RetentionTerms(
      try RetentionRules(rules),
      grouping: try #require(SnapshotGrouping(names.joined(separator: ","))), now: now,
      calendar: RetentionCalendar(try #require(TimeZone(identifier: zone))),
      retain: { Scene.retain($0) })
  }

  /// Returns a history of two devices. The clock of a device is sometimes wrong by an hour or a
  /// year, so that the times do not always follow the sequence.
  private static func history(until now: Timestamp, _ random: inout Seeded) -> [SnapshotHead] {
    var heads: [SnapshotHead] = []
    for device in ["a", "b"] {
      let steps: [Int64] = [60, 1800, hour, 6 * hour, day, 5 * day, 20 * day]
      let step = steps.randomElement(using: &random) ?? day
      let count = Int.random(in: 0...40, using: &random)
      let hasClockErrors = Int.random(in: 0..<4, using: &random) == 0
      var time = now.seconds
      for position in 0..<count {
        let isSame = Int.random(in: 0..<12, using: &random) == 0
        time -= isSame ? 0 : Int64.random(in: 0...(2 * step), using: &random)
        let isWrong = hasClockErrors && Int.random(in: 0..<8, using: &random) == 0
        let errors: [Int64] = [-year, -hour, hour, year]
        let error = errors.randomElement(using: &random) ?? 0
        let tags = ["a", "b", "c"].filter { _ in Int.random(in: 0..<4, using: &random) == 0 }
        let isAutomatic = Int.random(in: 0..<8, using: &random) == 0
        let reasons: [Reason] =
          isAutomatic
          ? [.preUpdate, .preRestore, .preRollback, .uninstall]
          : [.manual, .scheduled, Reason(rawValue: "later")]
        heads.append(
          .made(
            heads.count, at: Timestamp(seconds: time + (isWrong ? error : 0)),
            sequence: UInt64(count - position), tags: tags,
            reason: reasons.randomElement(using: &random) ?? .manual,
            scope: Int.random(in: 0..<5, using: &random) == 0 ? .apps(["x", "y"]) : .device,
            device: device))
      }
    }
    return heads.shuffled(using: &random)
  }

  private static func rules(_ random: inout Seeded) -> [(name: String, value: String)] {
    var rules: [(name: String, value: String)] = []
    let periods = ["hourly", "daily", "weekly", "monthly", "yearly"]
    for name in ["last"] + periods where Int.random(in: 0..<3, using: &random) == 0 {
      let count = Int.random(in: 0...9, using: &random)
      rules.append((name, count == 9 ? "unlimited" : "\(count)"))
    }
    for name in ["within"] + periods.map({ "within-" + $0 })
    where Int.random(in: 0..<5, using: &random) == 0 {
      let numbers = [("y", 0...2), ("m", 0...14), ("d", 0...40), ("h", 0...50)].filter { _ in
        Bool.random(using: &random)
      }
      let span = numbers.map { "\(Int.random(in: $0.1, using: &random))\($0.0)" }.joined()
      rules.append((name, span.isEmpty ? "3d" : span))
    }
    if Int.random(in: 0..<5, using: &random) == 0 {
      rules.append(("tag", ["a", "b", "a,b", ""].randomElement(using: &random) ?? "a"))
    }
    if Int.random(in: 0..<5, using: &random) == 0 { rules.append(("oldest", "")) }
    return rules
  }

  /// The retention times in the policy. There is none for snapshots before a rollback.
  private static func retain(_ head: SnapshotHead) -> Int64? {
    [.preUpdate: 31 * day, .preRestore: day, .uninstall: year][head.reason]
  }
}

extension PlanPropertyTests {
  fileprivate static func randomZone(_ random: inout Seeded) -> String {
    zones.randomElement(using: &random) ?? "UTC"
  }
}

// MARK: - The reference

extension Scene {
  /// Returns the reasons to keep each snapshot, applying one rule after another to the whole group.
  func reference() -> [SnapshotID: Set<String>] {
    var reasons: [SnapshotID: Set<String>] = [:]
    for head in heads { reasons[head.id] = pins.contains(head.id) ? ["pinned"] : [] }
    for group in groups() {
      var regular: [SnapshotHead] = []
      for head in group {
        switch head.reason {
        case _ where head.time > terms.now: reasons[head.id]?.insert("future")
        case .preUpdate, .preRestore, .preRollback, .uninstall:
          if let reason = reasonForAutomatic(head) { reasons[head.id]?.insert(reason) }
        default: regular.append(head)
        }
      }
      let ordered = newestFirst(regular)
      for (name, value) in ruleList {
        for (position, reason) in kept(by: name, value, ordered) {
          reasons[ordered[position].id]?.insert(reason)
        }
      }
      if regular.allSatisfy({ reasons[$0.id]?.isEmpty == true }) {
        for head in regular { reasons[head.id] = ["refused"] }
      }
    }
    return reasons
  }

  private func groups() -> [[SnapshotHead]] {
    Array(
      Dictionary(grouping: heads) { head in
        [
          groupsByDevice ? head.device.identity : "", groupsByScope ? "\(head.scope)" : "",
          groupsByTags ? head.tags.joined(separator: ",") : "",
        ]
      }.values)
  }

  private func reasonForAutomatic(_ head: SnapshotHead) -> String? {
    let age = terms.now.seconds - head.time.seconds
    switch head.reason {
    case .preUpdate: return age < 31 * 86_400 ? "retain 31d" : nil
    case .preRestore: return age < 86_400 ? "retain 1d" : nil
    case .uninstall: return age < 365 * 86_400 ? "retain 365d" : nil
    default: return "retain unknown"
    }
  }

  /// The order defined in docs/repository-format.md: a snapshot is considered to have begun no
  /// earlier than those of the same source with a smaller sequence.
  private func newestFirst(_ heads: [SnapshotHead]) -> [SnapshotHead] {
    func age(_ head: SnapshotHead) -> Timestamp {
      heads.filter { $0.source == head.source && $0.sequence <= head.sequence }.map(\.time).max()
        ?? head.time
    }
    return heads.map { (age: age($0), head: $0) }
      .sorted { ($0.age, $0.head.sequence, $0.head.id) > ($1.age, $1.head.sequence, $1.head.id) }
      .map(\.head)
  }

  /// Returns the positions that a rule keeps, each with the reason.
  private func kept(
    by name: String, _ value: String, _ heads: [SnapshotHead]
  ) -> [(position: Int, reason: String)] {
    guard let newest = heads.first, let oldest = heads.indices.last else { return [] }
    switch name {
    case "last":
      let count = value == "unlimited" ? Int.max : Int(value) ?? 0
      return heads.indices.prefix(count).map { ($0, "last") }
    case "oldest": return [(oldest, "oldest")]
    case "tag":
      let tags = Set(value.split(separator: ",").map(String.init))
      return heads.indices.filter {
        tags.isEmpty ? heads[$0].tags.isEmpty : tags.isSubset(of: heads[$0].tags)
      }.map { ($0, tags.isEmpty ? "no tags" : "tag \(value)") }
    case "within":
      guard let start = start(of: value, before: newest.time) else { return [] }
      return heads.indices.filter { heads[$0].time > start }.map { ($0, "within \(shown(value))") }
    case _ where name.hasPrefix("within-"):
      guard let start = start(of: value, before: newest.time) else { return [] }
      let period = String(name.dropFirst(7))
      let eligible = heads.indices.filter { heads[$0].time > start }
      return leaders(of: period, among: eligible, heads, limit: .max).map {
        ($0.position, "\($0.reason) within \(shown(value))")
      }
    default:
      let count = value == "unlimited" ? Int.max : Int(value) ?? 0
      return leaders(of: name, among: Array(heads.indices), heads, limit: count)
    }
  }

  /// Returns up to `limit` positions whose slots differ from those of all earlier positions, and
  /// the oldest of all if the limit is not reached.
  private func leaders(
    of period: String, among positions: [Int], _ heads: [SnapshotHead], limit: Int
  ) -> [(position: Int, reason: String)] {
    let slots = positions.map { slot(of: heads[$0].time, period) }
    let first = positions.indices.filter { !slots[..<$0].contains(slots[$0]) }.map { positions[$0] }
    var found = first.prefix(limit).map { (position: $0, reason: period) }
    let oldest = heads.count - 1
    if positions.last == oldest, !first.contains(oldest), first.count < limit {
      found.append((position: oldest, reason: "oldest " + period))
    }
    return found
  }

  /// Returns the slot as text, according to Foundation's calendar.
  private func slot(of time: Timestamp, _ period: String) -> String {
    var calendar = Calendar(identifier: period == "weekly" ? .iso8601 : .gregorian)
    calendar.timeZone = TimeZone(identifier: zone) ?? .gmt
    let parts: [Calendar.Component] =
      switch period {
      case "hourly": [.year, .month, .day, .hour]
      case "daily": [.year, .month, .day]
      case "weekly": [.yearForWeekOfYear, .weekOfYear]
      case "monthly": [.year, .month]
      default: [.year]
      }
    let date = Date(timeIntervalSince1970: TimeInterval(time.seconds))
    return parts.map { "\(calendar.component($0, from: date))" }.joined(separator: "-")
  }

  /// Returns the start of a span that ends at `end`, or nil if the span is 0.
  private func start(of span: String, before end: Timestamp) -> Timestamp? {
    var numbers: [Character: Int] = [:]
    for match in span.matches(of: /([0-9]+)([ymdh])/) {
      numbers[match.output.2.first ?? " "] = Int(match.output.1)
    }
    if numbers.values.allSatisfy({ $0 == 0 }) { return nil }
    guard let zone = TimeZone(identifier: zone) else { return nil }
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = zone
    let date = Date(timeIntervalSince1970: TimeInterval(end.seconds))
    let now = calendar.dateComponents([.year, .month, .day, .hour, .minute, .second], from: date)
    // From the first day of the month, days are added one by one.
    let months =
      (now.year ?? 0) * 12 + (now.month ?? 0) - 1 - (numbers["m"] ?? 0)
      - 12 * (numbers["y"] ?? 0)
    var plain = Calendar(identifier: .gregorian)
    plain.timeZone = .gmt
    guard
      let first = plain.date(
        from: DateComponents(year: months / 12, month: months % 12 + 1, day: 1))
    else { return nil }
    let days = (now.day ?? 0) - 1 - (numbers["d"] ?? 0)
    let midnight = Int64(first.timeIntervalSince1970) + Int64(days) * 86_400
    let clock = Int64((now.hour ?? 0) * 3600 + (now.minute ?? 0) * 60 + (now.second ?? 0))
    let utc = Timestamp(seconds: midnight + clock)
    var seconds = utc.seconds
    for _ in 0..<2 {
      let moment = Date(timeIntervalSince1970: TimeInterval(seconds))
      seconds = utc.seconds - Int64(zone.secondsFromGMT(for: moment))
    }
    return Timestamp(seconds: seconds - Int64(numbers["h"] ?? 0) * 3600)
  }

  /// The displayed form of a span: years, months, days and hours, without zeros.
  private func shown(_ span: String) -> String {
    span.matches(of: /([0-9]+)([ymdh])/).filter { $0.output.1 != "0" }.map { "\($0.output.0)" }
      .joined()
  }
}

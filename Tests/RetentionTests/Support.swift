import ArchiveStore
import Codecs
import Foundation
import Retention
import SystemIO

extension RetentionCalendar {
  /// Creates the calendar of a time zone from Foundation's.
  init(_ zone: TimeZone) {
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = zone
    let parts: Set<Calendar.Component> = [.year, .month, .day, .hour, .minute, .second]
    self.init(
      local: { [calendar] time in
        let date = Date(timeIntervalSince1970: TimeInterval(time.seconds))
        let found = calendar.dateComponents(parts, from: date)
        return CalendarTime(
          year: found.year ?? 0, month: found.month ?? 0, day: found.day ?? 0,
          hour: found.hour ?? 0, minute: found.minute ?? 0, second: found.second ?? 0)
      },
      timestamp: { zone.timestamp($0) })
  }

  static let utc = RetentionCalendar(.gmt)
}

extension TimeZone {
  /// Converts a local time, whose components may be out of range.
  func timestamp(_ time: CalendarTime) -> Timestamp? {
    guard let plain = Timestamp(time, isUTC: true) else { return nil }
    var seconds = plain.seconds
    for _ in 0..<2 {
      let date = Date(timeIntervalSince1970: TimeInterval(seconds))
      seconds = plain.seconds - Int64(secondsFromGMT(for: date))
    }
    return Timestamp(seconds: seconds)
  }
}

extension Timestamp {
  /// Creates a time from an RFC 3339 text in UTC, without the final Z.
  init(_ text: String) throws {
    struct Invalid: Error {}
    guard let time = Timestamp(rfc3339: text + "Z") else { throw Invalid() }
    self = time
  }

  static func + (time: Timestamp, seconds: Int64) -> Timestamp {
    Timestamp(seconds: time.seconds + seconds, nanoseconds: time.nanoseconds)
  }
}

let hour: Int64 = 3600
let day: Int64 = 86_400
let year: Int64 = 365 * 86_400

extension SnapshotHead {
  /// Returns the head of a snapshot of a device. Its id is derived from the number.
  static func made(
    _ number: Int, at time: Timestamp, sequence: UInt64? = nil, tags: [String] = [],
    reason: Reason = .manual, scope: Scope = .device, device: String = "a",
    host: String = "host", original: SnapshotID? = nil
  ) -> SnapshotHead {
    var snapshot = Snapshot(
      repository: Blake2b.hash([]), source: Blake2b.hash(Array(device.utf8)),
      sequence: sequence ?? UInt64(number + 1), time: time, host: host, user: "user",
      device: DeviceRecord(
        identity: device, platform: "linux", layout: "folder", root: ByteString("/" + device)),
      scope: scope, reason: reason,
      policy: PolicyRecord(name: "everything", digest: Blake2b.hash([])),
      tree: TreeReference(Blake2b.hash([])), program: "test")
    snapshot.tags = tags
    snapshot.original = original.map { Snapshot.Original(repository: Blake2b.hash([]), id: $0) }
    return SnapshotHead(
      StoredSnapshot(id: Blake2b.hash(Array("\(number)".utf8)), snapshot: snapshot))
  }
}

extension RetentionRules {
  /// Parses rules such as `daily 3; within-weekly 1m; tag a,b; oldest`.
  init(_ text: String) throws {
    struct Invalid: Error {
      let text: String
    }
    self.init()
    for part in text.split(separator: "; ") {
      let words = part.split(separator: " ", maxSplits: 1).map(String.init)
      let value = words.count > 1 ? words[1] : ""
      let period = Period(rawValue: words[0].replacing("within-", with: ""))
      switch words[0] {
      case "last": last = try Count(value) ?? { throw Invalid(text: value) }()
      case "within": within = RetentionSpan(value)
      case "tag": tags.append(try TagList(value) ?? { throw Invalid(text: value) }())
      case "oldest": keepsOldest = true
      case let name where name.hasPrefix("within-"):
        withinPeriods[try period ?? { throw Invalid(text: name) }()] = RetentionSpan(value)
      case let name: counts[try period ?? { throw Invalid(text: name) }()] = Count(value)
      }
    }
  }
}

extension RetentionPlan {
  /// All entries by id.
  var entries: [SnapshotID: Entry] {
    Dictionary(uniqueKeysWithValues: groups.flatMap(\.entries).map { ($0.head.id, $0) })
  }

  /// The reasons for each snapshot by its time, for plans in which all times differ.
  var reasonsByTime: [Timestamp: [String]] {
    Dictionary(
      uniqueKeysWithValues: entries.values.map { ($0.head.time, $0.reasons.map(\.description)) })
  }
}

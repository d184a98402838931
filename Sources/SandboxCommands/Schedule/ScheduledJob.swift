internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// What is to be done again and again: what is run, when, and what happens when it fails.
struct ScheduledJob {
  let work: Work
  /// What tells it from other schedules of this user: `sandboxctl-backup`, or that and a profile.
  let name: String
  /// The absolute path of this program.
  let program: String
  /// The words after the program's path.
  let words: [String]
  /// What of this process's environment it needs: where settings, data and caches lie.
  let environment: [(name: String, value: String)]
  /// Nothing for what runs all the time and knows itself when there is something to do.
  let calendar: ScheduleCalendar?
  /// Seconds by which it begins later at most, by chance.
  let randomDelay: Int
  /// Only on mains power.
  let isOnMainsOnly: Bool
  /// A line for `/bin/sh` when it fails.
  let onFailure: String?

  /// What a schedule is for.
  enum Work: String, CaseIterable {
    case backup
    case purge

    /// What the names of its schedules begin with.
    var prefix: String { "sandboxctl-" + rawValue }
  }

  /// The variables that say where the program finds things, and that a cron job has not.
  static let variables = [
    "SANDBOXCTL_REPOSITORY", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
  ]
}

/// How often, and when.
enum ScheduleCalendar {
  case hourly
  case daily
  case weekly
  /// In the words of systemd.time(7), or of crontab(5).
  case custom(String)

  /// As `OnCalendar=` takes it (systemd.time(7)).
  var systemd: String {
    switch self {
    case .hourly: "hourly"
    case .daily: "daily"
    case .weekly: "weekly"
    case .custom(let text): text
    }
  }

  /// The five fields of crontab(5). The minute, and for days and weeks the hour between 1 and 5, come
  /// from a text, so that many machines do not begin at once and each always at the same time.
  func cron(spreadBy text: String) throws -> String {
    let bytes = Blake2b.hash(Array(text.utf8)).bytes
    let minute = Int(bytes[0]) % 60
    let hour = 1 + Int(bytes[1]) % 4
    switch self {
    case .hourly: return "\(minute) * * * *"
    case .daily: return "\(minute) \(hour) * * *"
    case .weekly: return "\(minute) \(hour) * * \(Int(bytes[2]) % 7)"
    case .custom(let text): return try Self.checked(text)
    }
  }

  private static func checked(_ text: String) throws -> String {
    let fields = text.split(separator: " ")
    let isWord = text.wholeMatch(of: /@(hourly|daily|midnight|weekly|monthly|yearly|annually)/)
    let isPlain = fields.allSatisfy { $0.wholeMatch(of: /[0-9A-Za-z*\/,-]+/) != nil }
    guard isWord != nil || fields.count == 5 && isPlain else {
      throw UsageError(
        "'\(ByteString(text))' is no time of cron's",
        hint: "give five fields: minute, hour, day, month, day of the week, as '30 2 * * *'")
    }
    return fields.joined(separator: " ")
  }
}

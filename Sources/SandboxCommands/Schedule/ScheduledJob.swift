internal import Codecs
internal import SystemIO

/// A recurring job: its command and times, and the handling of failures.
struct ScheduledJob {
  let work: Work
  /// The name among the schedules of this user: `sandboxctl-backup`, optionally with a profile.
  let name: String
  /// The absolute path of this program.
  let program: String
  /// The arguments of the program.
  let words: [String]
  /// The arguments with which it removes snapshots after the backup, if that is due; empty for
  /// none.
  let forgetting: [String]
  /// The environment variables that it needs.
  let environment: [(name: String, value: String)]
  /// The times; nil for a service that runs permanently.
  let calendar: Calendar?
  /// The maximum of the random delay, in seconds.
  let randomDelay: Int
  /// Whether it runs only on mains power.
  let isOnMainsOnly: Bool
  /// A command for `/bin/sh` to run if it fails.
  let onFailure: String?

  /// The work of a schedule.
  enum Work: String, CaseIterable {
    case backup
    case purge

    /// The prefix of the names of its schedules.
    var prefix: String { "sandboxctl-" + rawValue }
  }

  /// The first words of a backup, and those of a purge that does not run permanently.
  static let backupWords = ["backup", "--quiet", "--scheduled"]
  static let purgeWords = ["purge", "--yes", "--quiet"]

  /// Returns its commands for sh(1): the program, and the removal of snapshots if the program ended
  /// with 0 or 3. The status is that of the program, or that of a failed removal.
  ///
  /// - Parameters:
  ///   - prefix: words of the shell before each command.
  ///   - extra: further arguments of the program.
  func shellLine(prefix: String = "", extra: [String] = []) -> String {
    func command(_ words: [String]) -> String {
      prefix + ([program] + words).map(ShellWord.text).joined(separator: " ")
    }
    let work = command(words + extra)
    if forgetting.isEmpty { return work }
    return "{ \(work); s=$?; case $s in 0|3) \(command(forgetting)) || s=$?;; esac; (exit $s); }"
  }

  /// The identity of this machine, from which the times of schedules are derived.
  static var host: String { Host.machineID ?? Host.name }

  /// Whether the command that prints the passphrase is an argument of a process, which all users
  /// can see: as an option, or in the line that cron passes to the shell. A variable of systemd is
  /// not.
  func showsPassphraseCommand(byCron: Bool) -> Bool {
    let option = "--passphrase-command"
    return words.contains { $0 == option || $0.hasPrefix(option + "=") }
      || byCron && environment.contains { $0.name == Self.passphraseCommand }
  }
}

extension String {
  /// Whether a program that reads lines would see more than one, or an end. A carriage return
  /// before a line feed forms one character with it, and systemd ends a line at either.
  var hasLineBreak: Bool { utf8.contains { [0, 0x0A, 0x0D].contains($0) } }
}

extension ScheduledJob {
  /// The times of a schedule.
  enum Calendar {
    case hourly
    case daily
    case weekly
    /// In the syntax of systemd.time(7) or crontab(5).
    case custom(String)

    /// The value of `OnCalendar=` (systemd.time(7)).
    var systemd: String {
      switch self {
      case .hourly: "hourly"
      case .daily: "daily"
      case .weekly: "weekly"
      case .custom(let text): text
      }
    }

    /// Returns the five fields of crontab(5). The minute, and for daily and weekly jobs the hour
    /// from 1 to 4, are derived from a text, so that machines start at different times, and each
    /// machine always at the same time.
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
          .invalidValue, "'\(ByteString(text))' is not a time for cron",
          hint:
            "give five fields: minute, hour, day, month, day of the week, for example '30 2 * * *'")
      }
      return fields.joined(separator: " ")
    }
  }
}

extension ScheduledJob.Work {
  /// Returns the name of a profile's schedule, or of the schedule without a profile.
  func name(profile: String?) throws -> String {
    guard let profile else { return prefix }
    // A name with this suffix is that of the service for failures of another schedule.
    guard profile.wholeMatch(of: /[A-Za-z0-9_.-]+/) != nil, !"-\(profile)".hasSuffix("-failed")
    else {
      throw UsageError(
        .invalidValue, "the profile '\(ByteString(profile))' cannot name a schedule",
        hint: "use letters, digits, '_', '.' and '-', and an ending other than '-failed'")
    }
    return "\(prefix)-\(profile)"
  }
}

extension ScheduledJob {
  /// Refuses a text that sh(1) cannot parse. Accepts any text if there is no shell. A crontab line
  /// with a syntax error would never run, and nothing would report that.
  ///
  /// - Parameter subject: the name of the text, for the message.
  static func requireShellSyntax(_ text: String, of subject: String) throws(UsageError) {
    guard let ending = try? ChildProgram.run(["sh", "-n"], input: Array(text.utf8 + [0x0A])),
      ending.code != 0
    else { return }
    let message = String(decoding: ending.errors, as: UTF8.self).split(separator: "\n").first ?? ""
    throw UsageError(
      .invalidShellText, "the shell cannot parse \(subject): \(ByteString(String(message)))",
      hint: "try it with 'sh -n', and quote special characters")
  }
}

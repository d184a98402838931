internal import SystemIO

/// The user's crontab. Each schedule of this program takes two lines: a comment with its name, and
/// the job. All other lines are preserved byte for byte.
struct Crontab {
  private(set) var lines: [ArraySlice<UInt8>]

  /// The comment before a job of this program, up to the name.
  private static let mark = "# sandboxctl schedule: "

  /// Reads the crontab. A missing one is empty.
  static func read() throws -> Crontab {
    let ending = try run(["crontab", "-l"])
    let message = String(decoding: ending.errors, as: UTF8.self)
    // Debian, cronie and BSD print the first, busybox the others; all exit with 1.
    let isMissing = message.contains("can't open") && message.contains("No such file")
    let isAbsent = ending.code == 1 && (message.contains("no crontab") || isMissing)
    guard ending.code == 0 || isAbsent else { throw failure("read", message) }
    return Crontab(ending.code == 0 ? ending.output : [])
  }

  init(_ text: [UInt8]) {
    lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    if lines.last?.isEmpty == true { lines.removeLast() }
  }

  /// The whole text. Each line ends with a newline, which cron requires of the last one.
  var bytes: [UInt8] { lines.flatMap { $0 + [UInt8(ascii: "\n")] } }

  /// The jobs of this program, by name.
  var jobs: [(name: String, line: String)] {
    lines.indices.compactMap { index in
      guard let name = Self.name(lines[index]), hasJob(after: index) else { return nil }
      return (name, String(decoding: lines[index + 1], as: UTF8.self))
    }
  }

  /// Returns the times in a job's line, and its command as cron(8) passes it to the shell.
  static func parts(_ line: String) -> (calendar: String, command: String) {
    let fields = line.split(separator: " ", omittingEmptySubsequences: false)
    let count = line.hasPrefix("@") ? 1 : 5
    return (
      fields.prefix(count).joined(separator: " "),
      fields.dropFirst(count).joined(separator: " ").replacing("\\%", with: "%")
    )
  }

  private static func name(_ line: ArraySlice<UInt8>) -> String? {
    line.starts(with: mark.utf8)
      ? String(decoding: line.dropFirst(mark.utf8.count).prefix { $0 != 0x20 }, as: UTF8.self) : nil
  }

  /// Returns the lines of the job with a name: its comment, and the line after it, unless the user
  /// has removed the job or put another one there.
  private func lines(ofJob name: String) -> Range<Int>? {
    guard let index = lines.firstIndex(where: { Self.name($0) == name }) else { return nil }
    return index..<(hasJob(after: index) ? index + 2 : index + 1)
  }

  private func hasJob(after index: Int) -> Bool {
    index + 1 < lines.count && Self.name(lines[index + 1]) == nil
      && ScheduledJob.isCronLine(String(decoding: lines[index + 1], as: UTF8.self))
  }

  /// Replaces the job with a name, or appends it.
  mutating func set(_ name: String, _ line: String) {
    let ours = [
      ArraySlice((Self.mark + name + " (schedule remove --cron removes it)").utf8),
      ArraySlice(line.utf8),
    ]
    if let old = lines(ofJob: name) {
      lines.replaceSubrange(old, with: ours)
    } else {
      lines += ours
    }
  }

  /// Removes a job. Returns false if none has that name.
  mutating func remove(_ name: String) -> Bool {
    guard let old = lines(ofJob: name) else { return false }
    lines.removeSubrange(old)
    return true
  }

  /// Installs the crontab, or removes it if it is empty.
  func write() throws {
    let ending = try Self.run(lines.isEmpty ? ["crontab", "-r"] : ["crontab", "-"], input: bytes)
    guard ending.code == 0 else {
      throw Self.failure("write", String(decoding: ending.errors, as: UTF8.self))
    }
  }

  private static func run(
    _ words: [ByteString], input: [UInt8] = []
  ) throws -> ChildProgram.Ending {
    do throws(SystemError) {
      return try ChildProgram.run(words, input: input)
    } catch {
      guard error.isMissing else { throw error }
      throw OperationError(
        .failed, code: .programMissing, "use cron",
        reason: "the program 'crontab' is not installed",
        hint: "install cron, or use '--systemd'")
    }
  }

  private static func failure(_ verb: String, _ message: String) -> OperationError {
    let reason = message.split(separator: "\n").first.map(String.init) ?? "crontab failed"
    return OperationError(
      .failed, code: .programFailed, "\(verb) the crontab",
      reason: ByteString(reason).description)
  }
}

extension ScheduledJob {
  /// Returns the job as a line of crontab(5), in which a bare % would end the command.
  func cronLine(host: String) throws -> String {
    var prefix = environment.map { "\($0.name)=\(ShellWord.text($0.value)) " }.joined()
    prefix += "nice -n 10 ionice -c 3 "
    var command = shellLine(prefix: prefix, extra: isOnMainsOnly ? ["--when", "on-ac"] : [])
    if randomDelay > 0 { command = "sleep $(shuf -n 1 -i 0-\(randomDelay)); " + command }
    // One argument for a separate shell, so that a comment or `exit` in it cannot affect the line.
    // The status of the line remains that of the job.
    if let onFailure {
      command += " || { s=$?; sh -c \(ShellWord.text(onFailure)); exit $s; }"
    }
    guard !command.hasLineBreak else {
      throw UsageError(
        .invalidShellText, "a crontab line cannot contain a newline", hint: "remove the newline")
    }
    try Self.requireShellSyntax(command, of: "the line of the crontab")
    let time = try (calendar ?? .hourly).cron(spreadBy: "\(host) \(name)")
    return time + " " + Self.cronText(command)
  }

  /// Escapes each `%` for crontab(5). Some kinds of cron, such as Debian's, also read two
  /// backslashes as one, and a `%` after them as the end. Every backslash of the line is within
  /// single quotes, or before one, so the quotes are closed and reopened between it and the next
  /// character.
  private static func cronText(_ command: String) -> String {
    var text = String.UnicodeScalarView()
    var last: Unicode.Scalar = " "
    for scalar in command.unicodeScalars {
      if last == "\\", scalar == "\\" || scalar == "%" { text.append(contentsOf: ["'", "'"]) }
      if scalar == "%" { text.append("\\") }
      text.append(scalar)
      last = scalar
    }
    return String(text)
  }

  /// Whether a line of a crontab is a job of this program, even if changed or commented out.
  static func isCronLine(_ line: String) -> Bool {
    line.contains("sandboxctl")
      || [backupWords, purgeWords].contains { line.contains(" " + $0.joined(separator: " ")) }
  }
}

/// The times of a job, as the five fields of crontab(5) or a word such as `@daily`.
struct CronTime {
  private let minutes: Set<Int>
  private let hours: Set<Int>
  private let days: Set<Int>
  private let months: Set<Int>
  /// 0 (Sunday) to 6.
  private let weekdays: Set<Int>
  /// Whether a day has to match both the day of the month and the day of the week, which is the
  /// case if one of these fields begins with a star. Otherwise one match is enough.
  private let needsBoth: Bool

  private static let words = [
    "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
  ]
  private static let monthNames = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
  ]
  private static let dayNames = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]

  /// Parses the fields; nil if they contain no times, as `@reboot`.
  init?(_ text: String) {
    let fields = (Self.words[text] ?? text).split(separator: " ")
    guard fields.count == 5, let minutes = Self.values(fields[0], in: 0...59),
      let hours = Self.values(fields[1], in: 0...23), let days = Self.values(fields[2], in: 1...31),
      let months = Self.values(fields[3], in: 1...12, names: Self.monthNames, from: 1),
      let weekdays = Self.values(fields[4], in: 0...7, names: Self.dayNames, from: 0)
    else { return nil }
    (self.minutes, self.hours, self.days, self.months) = (minutes, hours, days, months)
    self.weekdays = Set(weekdays.map { $0 % 7 })
    needsBoth = fields[2].hasPrefix("*") || fields[4].hasPrefix("*")
  }

  /// Returns the numbers of a field: `*`, `*/5`, `1-5`, `1-30/10`, `mon`, separated by commas.
  private static func values(
    _ field: Substring, in range: ClosedRange<Int>, names: [String] = [], from first: Int = 0
  ) -> Set<Int>? {
    func number(_ text: Substring) -> Int? {
      let named = names.firstIndex(of: text.lowercased()).map { $0 + first }
      return (named ?? Int(text)).flatMap { range.contains($0) ? $0 : nil }
    }
    var found: Set<Int> = []
    for part in field.split(separator: ",", omittingEmptySubsequences: false) {
      let halves = part.split(separator: "/", omittingEmptySubsequences: false)
      let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false).map(number)
      let isAll = halves[0] == "*"
      guard halves.count < 3, ends.count < 3, isAll || !ends.contains(nil) else { return nil }
      let low = isAll ? range.lowerBound : ends[0] ?? 0
      let high = isAll ? range.upperBound : (ends.last ?? nil) ?? 0
      let step = halves.count == 2 ? Int(halves[1]) ?? 0 : 1
      // A step needs a range to step through.
      guard low <= high, step > 0, halves.count == 1 || isAll || ends.count == 2 else { return nil }
      found.formUnion(stride(from: low, through: high, by: step))
    }
    return found
  }

  /// Returns the first matching minute after a time, in local time; nil if there is none within
  /// nine years, for example for February 30.
  func next(after now: Timestamp) -> Timestamp? {
    guard let today = now.local else { return nil }
    for offset in 0..<(9 * 366) {
      guard let noon = Timestamp(Self.time(today, plus: offset, hour: 12, minute: 0)),
        let day = noon.local, runs(on: day)
      else { continue }
      for hour in hours.sorted() {
        for minute in minutes.sorted() {
          if let moment = Timestamp(Self.time(day, plus: 0, hour: hour, minute: minute)),
            moment > now
          {
            return moment
          }
        }
      }
    }
    return nil
  }

  private static func time(
    _ day: CalendarTime, plus days: Int, hour: Int, minute: Int
  ) -> CalendarTime {
    CalendarTime(
      year: day.year, month: day.month, day: day.day + days, hour: hour, minute: minute, second: 0)
  }

  private func runs(on day: CalendarTime) -> Bool {
    guard months.contains(day.month),
      let midnight = Timestamp(Self.time(day, plus: 0, hour: 0, minute: 0), isUTC: true)
    else { return false }
    // 1970-01-01 was a Thursday.
    let weekday = Int((midnight.seconds / 86_400 + 4) % 7)
    let (isDay, isWeekday) = (days.contains(day.day), weekdays.contains(weekday))
    return needsBoth ? isDay && isWeekday : isDay || isWeekday
  }
}

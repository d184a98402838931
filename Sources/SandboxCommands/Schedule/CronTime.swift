internal import SystemIO

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

  /// Parses the fields; nil if they have no times, for example `@reboot`.
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

public import SystemIO

extension Timestamp {
  /// The time in UTC in RFC 3339 format, with nanoseconds if they are not 0.
  public var rfc3339: String {
    let days = Self.divide(seconds, by: 86_400)
    let second = (seconds % 86_400 + 86_400) % 86_400
    let date = Self.date(days: days)
    let time = [second / 3600, second / 60 % 60, second % 60].map { Self.padded($0, 2) }
    let year = Self.padded(date.year, 4)
    let fraction = nanoseconds == 0 ? "" : "." + Self.padded(Int64(nanoseconds), 9)
    let day = "\(Self.padded(date.month, 2))-\(Self.padded(date.day, 2))"
    return "\(year)-\(day)T\(time.joined(separator: ":"))\(fraction)Z"
  }

  /// Parses an RFC 3339 time with a fraction of up to nine digits and `Z` or an offset. Returns nil
  /// for any other text, and for an invalid date or time.
  public init?(rfc3339 text: String) {
    var reader = DateReader(rest: Array(text.utf8)[...])
    guard let year = reader.number(4), reader.consume("-"), let month = reader.number(2),
      reader.consume("-"), let day = reader.number(2), reader.consume("T") || reader.consume("t"),
      let hour = reader.number(2), reader.consume(":"), let minute = reader.number(2),
      reader.consume(":"), let second = reader.number(2), let nanoseconds = reader.fraction(),
      let offset = reader.offset(), reader.rest.isEmpty,
      (1...12).contains(month), day >= 1, hour < 24, minute < 60, second < 61
    else { return nil }
    let days = Self.days(year: year, month: month, day: day)
    guard Self.date(days: days) == (year, month, day) else { return nil }
    self.init(
      seconds: days * 86_400 + hour * 3600 + minute * 60 + second - offset,
      nanoseconds: nanoseconds)
  }

  /// Returns the proleptic Gregorian date of a day counted from 1970-01-01. Years begin in March,
  /// in eras of 400 years or 146,097 days.
  private static func date(days: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = days + 719_468
    let era = divide(shifted, by: 146_097)
    let dayOfEra = shifted - era * 146_097
    let yearOfEra =
      (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let marchMonth = (5 * dayOfYear + 2) / 153
    let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    return (year, month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
  }

  private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
    let shifted = month <= 2 ? year - 1 : year
    let era = divide(shifted, by: 400)
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  private static func divide(_ value: Int64, by divisor: Int64) -> Int64 {
    value / divisor - (value % divisor < 0 ? 1 : 0)
  }

  private static func padded(_ value: Int64, _ width: Int) -> String {
    let digits = String(value)
    return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
  }

  /// A parser for the parts of a date.
  private struct DateReader {
    var rest: ArraySlice<UInt8>

    mutating func consume(_ character: Unicode.Scalar) -> Bool {
      guard rest.first == UInt8(ascii: character) else { return false }
      rest = rest.dropFirst()
      return true
    }

    mutating func number(_ digits: Int) -> Int64? {
      let text = rest.prefix(digits)
      guard text.count == digits, text.allSatisfy({ (0x30...0x39).contains($0) }) else {
        return nil
      }
      rest = rest.dropFirst(digits)
      return text.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
    }

    mutating func fraction() -> UInt32? {
      guard consume(".") else { return 0 }
      let digits = rest.prefix { (0x30...0x39).contains($0) }
      guard (1...9).contains(digits.count), let value = number(digits.count) else { return nil }
      return UInt32((digits.count..<9).reduce(value) { scaled, _ in scaled * 10 })
    }

    /// Parses the offset from UTC in seconds, positive to the east.
    mutating func offset() -> Int64? {
      if consume("Z") || consume("z") { return 0 }
      let sign: Int64 = consume("+") ? 1 : consume("-") ? -1 : 0
      guard sign != 0, let hours = number(2), consume(":"), let minutes = number(2), hours < 24,
        minutes < 60
      else { return nil }
      return sign * (hours * 3600 + minutes * 60)
    }
  }
}

extension LockHolder {
  /// Returns the recorded holder of a lock as text to append to an error message; empty if none can
  /// be read.
  public static func words(of lock: ByteString, in directory: borrowing Directory) -> String {
    guard let holder = FileLock.holder(of: lock, in: directory) else { return "" }
    return " (process \(holder.process), since \(holder.since.rfc3339))"
  }
}

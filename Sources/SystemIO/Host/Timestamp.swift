internal import Glibc

/// A point in time: whole seconds since 1970-01-01T00:00:00Z and nanoseconds.
public struct Timestamp: Hashable, Comparable, Sendable, BitwiseCopyable {
  /// Seconds since 1970, negative before.
  public var seconds: Int64
  /// 0 to 999,999,999, always forward from `seconds`.
  public var nanoseconds: UInt32

  /// Creates a timestamp.
  public init(seconds: Int64, nanoseconds: UInt32 = 0) {
    self.seconds = seconds
    self.nanoseconds = nanoseconds
  }

  public static func < (left: Self, right: Self) -> Bool {
    (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
  }

  /// Returns the seconds from `earlier` to this time, with fraction. File systems store any 64-bit
  /// number, so the difference of two may exceed 64 bits.
  public func since(_ earlier: Timestamp) -> Double {
    let (whole, isTooFar) = seconds.subtractingReportingOverflow(earlier.seconds)
    return (isTooFar ? Double(seconds) - Double(earlier.seconds) : Double(whole))
      + (Double(nanoseconds) - Double(earlier.nanoseconds)) / 1_000_000_000
  }
}

/// A time as calendar date and time of day.
public struct CalendarTime: Hashable, Sendable {
  public let year: Int
  /// 1 to 12.
  public let month: Int
  /// 1 to 31.
  public let day: Int
  public let hour: Int
  public let minute: Int
  /// 0 to 60.
  public let second: Int

  /// Creates a time from its parts.
  public init(year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int) {
    self.year = year
    self.month = month
    self.day = day
    self.hour = hour
    self.minute = minute
    self.second = second
  }

  /// Whether the date and the time of day exist.
  public var exists: Bool {
    guard let moment = Timestamp(self, isUTC: true) else { return false }
    var seconds = time_t(moment.seconds)
    var parts = unsafe tm()
    guard unsafe gmtime_r(&seconds, &parts) != nil else { return false }
    return unsafe CalendarTime(parts) == self
  }

  fileprivate init(_ parts: tm) {
    unsafe self.init(
      year: Int(parts.tm_year) + 1900, month: Int(parts.tm_mon) + 1, day: Int(parts.tm_mday),
      hour: Int(parts.tm_hour), minute: Int(parts.tm_min), second: Int(parts.tm_sec))
  }
}

extension Timestamp {
  /// The time in the host's time zone.
  public var local: CalendarTime? {
    var seconds = time_t(seconds)
    var parts = unsafe tm()
    guard unsafe localtime_r(&seconds, &parts) != nil else { return nil }
    return unsafe CalendarTime(parts)
  }

  /// Converts a time in the host's time zone, or in UTC. Parts that are too large carry over: March
  /// 32 is April 1.
  public init?(_ time: CalendarTime, isUTC: Bool = false) {
    var parts = unsafe tm()
    guard let year = Int32(exactly: time.year - 1900), let month = Int32(exactly: time.month - 1),
      let day = Int32(exactly: time.day), let hour = Int32(exactly: time.hour),
      let minute = Int32(exactly: time.minute), let second = Int32(exactly: time.second)
    else { return nil }
    unsafe (parts.tm_year, parts.tm_mon, parts.tm_mday) = (year, month, day)
    unsafe (parts.tm_hour, parts.tm_min, parts.tm_sec) = (hour, minute, second)
    unsafe parts.tm_isdst = -1
    self.init(seconds: Int64(isUTC ? unsafe timegm(&parts) : unsafe mktime(&parts)))
  }
}

internal import SystemIO

/// Times and durations in text output.
enum Times {
  /// Returns a time in the local time zone: `2026-11-01 10:30`.
  static func text(_ time: Timestamp) -> String {
    var bytes: [UInt8] = []
    append(time, to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Appends the text of a time, optionally with seconds.
  static func append(_ time: Timestamp, seconds: Bool = false, to bytes: inout [UInt8]) {
    guard let local = time.local else {
      bytes.append(contentsOf: "\(time.seconds) s since 1970".utf8)
      return
    }
    if (1000...9999).contains(local.year) {
      appendTwo(local.year / 100, to: &bytes)
      appendTwo(local.year % 100, to: &bytes)
    } else {
      bytes.append(contentsOf: "\(local.year)".utf8)
    }
    for (separator, number) in [("-", local.month), ("-", local.day), (" ", local.hour)]
      as [(Unicode.Scalar, Int)]
    {
      bytes.append(UInt8(ascii: separator))
      appendTwo(number, to: &bytes)
    }
    bytes.append(UInt8(ascii: ":"))
    appendTwo(local.minute, to: &bytes)
    if !seconds { return }
    bytes.append(UInt8(ascii: ":"))
    appendTwo(local.second, to: &bytes)
  }

  private static func appendTwo(_ number: Int, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / 10))
    bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number % 10))
  }

  /// Returns the age of a time: `3 h ago`; for a later time `in the future`.
  static func ago(_ time: Timestamp, now: Timestamp = Host.now()) -> String {
    let seconds = Int(now.since(time))
    switch seconds {
    case ..<(-60): return "in the future"
    case ..<60: return "just now"
    case ..<3600: return "\(seconds / 60) min ago"
    case ..<86_400: return "\(seconds / 3600) h ago"
    default: return Sizes.count(seconds / 86_400, "day") + " ago"
    }
  }

  /// Returns a duration: `0.4 s`, `24 s`, `3 min 20 s`, `2 h 5 min`.
  static func duration(_ seconds: Double) -> String {
    if seconds < 0.1 { return "under 0.1 s" }
    if seconds < 9.95 {
      let tenths = Int((seconds * 10).rounded())
      return "\(tenths / 10).\(tenths % 10) s"
    }
    let whole = Int(seconds.rounded())
    if whole < 60 { return "\(whole) s" }
    if whole < 3600 { return "\(whole / 60) min \(whole % 60) s" }
    return "\(whole / 3600) h \(whole % 3600 / 60) min"
  }
}

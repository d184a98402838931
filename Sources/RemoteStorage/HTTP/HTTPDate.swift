package import SystemIO

/// Times in headers: `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, 5.6.7).
package enum HTTPDate {
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// Returns the time in a text of the preferred form, or nil for any other text.
  package static func time(_ text: String) -> Timestamp? {
    let words = text.split(separator: " ")
    guard words.count == 6, words[5] == "GMT", let day = Int(words[1]),
      let month = months.firstIndex(where: { words[2] == $0 }), let year = Int(words[3])
    else { return nil }
    let parts = words[4].split(separator: ":").map { Int($0) ?? -1 }
    guard parts.count == 3, (1970...9999).contains(year) else { return nil }
    let time = CalendarTime(
      year: year, month: month + 1, day: day, hour: parts[0], minute: parts[1], second: parts[2])
    return time.exists ? Timestamp(time, isUTC: true) : nil
  }
}

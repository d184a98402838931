/// Bytes as people read and write them: K, M, G and KiB, MiB, GiB are 1024-based, kB, MB, GB
/// 1000-based.
enum Sizes {
  private static let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]

  /// Bytes in the unit that leaves 1 to 1023 before the point: `1.2 GiB`, `312 MiB`, `17 B`.
  static func text(_ bytes: UInt64) -> String {
    var value = Double(bytes)
    var unit = 0
    while value >= 1023.5, unit < units.count - 1 {
      value /= 1024
      unit += 1
    }
    if unit == 0 || value >= 99.95 { return "\(Int(value.rounded())) \(units[unit])" }
    let tenths = Int((value * 10).rounded())
    return "\(tenths / 10).\(tenths % 10) \(units[unit])"
  }

  /// A count with a comma between thousands: `41,209`.
  static func count(_ number: Int) -> String {
    let digits = Array(String(number.magnitude))
    var text = ""
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index) % 3 == 0 { text.append(",") }
      text.append(digit)
    }
    return (number < 0 ? "-" : "") + text
  }

  /// A count with its noun: `1 file`, `3 files`.
  static func count(_ number: Int, _ noun: String) -> String {
    "\(count(number)) \(noun)\(number == 1 ? "" : "s")"
  }

  /// A count with a noun whose plural is its own word: `1 entry`, `3 entries`.
  static func count(_ number: Int, _ noun: String, plural: String) -> String {
    "\(count(number)) \(number == 1 ? noun : plural)"
  }
}

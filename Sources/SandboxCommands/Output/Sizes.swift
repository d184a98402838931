internal import SystemIO

/// Sizes in text output: K, M, G and KiB, MiB, GiB are 1024-based, kB, MB, GB 1000-based.
enum Sizes {
  /// Returns a size in the unit that leaves 1 to 1023 before the point: `1.2 GiB`, `312 MiB`, `17
  /// B`.
  static func text(_ bytes: UInt64) -> String { ByteCount.text(bytes) }

  /// Appends the text of a size.
  static func append(_ bytes: UInt64, to text: inout [UInt8]) { ByteCount.append(bytes, to: &text) }

  /// Returns a count with a comma between thousands: `41,209`.
  static func count(_ number: Int) -> String {
    let digits = Array(String(number.magnitude))
    var text = ""
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index) % 3 == 0 { text.append(",") }
      text.append(digit)
    }
    return (number < 0 ? "-" : "") + text
  }

  /// Returns a count with its noun: `1 file`, `3 files`, `2 directories`.
  static func count(_ number: Int, _ noun: String) -> String {
    guard number != 1 else { return "\(count(number)) \(noun)" }
    return "\(count(number)) " + (noun.hasSuffix("y") ? noun.dropLast() + "ies" : noun + "s")
  }
}

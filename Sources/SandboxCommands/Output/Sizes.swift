internal import SystemIO

/// Bytes as people read and write them: K, M, G and KiB, MiB, GiB are 1024-based, kB, MB, GB
/// 1000-based.
enum Sizes {
  /// Bytes in the unit that leaves 1 to 1023 before the point: `1.2 GiB`, `312 MiB`, `17 B`.
  static func text(_ bytes: UInt64) -> String { ByteCount.text(bytes) }

  /// Appends what `text` gives.
  static func append(_ bytes: UInt64, to text: inout [UInt8]) { ByteCount.append(bytes, to: &text) }

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

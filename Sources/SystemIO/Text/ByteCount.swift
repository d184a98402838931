extension UInt64 {
  /// Adds a size, saturating at the maximum: sparse files can claim sizes whose sum exceeds 64
  /// bits.
  @inlinable public mutating func addClamping(_ size: UInt64) {
    let (sum, isTooLarge) = addingReportingOverflow(size)
    self = isTooLarge ? .max : sum
  }
}

extension Sequence<UInt64> {
  /// The sum of the sizes, saturating at the maximum.
  @inlinable public var clampedSum: UInt64 {
    var sum: UInt64 = 0
    for size in self { sum.addClamping(size) }
    return sum
  }
}

/// Formats byte counts.
public enum ByteCount {
  private static let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]

  /// Returns the count in the unit that leaves 1 to 1023 before the point: `1.2 GiB`, `312 MiB`,
  /// `17 B`.
  public static func text(_ bytes: UInt64) -> String {
    var text: [UInt8] = []
    append(bytes, to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// Appends the result of `text(_:)`.
  public static func append(_ bytes: UInt64, to text: inout [UInt8]) {
    var value = Double(bytes)
    var unit = 0
    while value >= 1023.5, unit < units.count - 1 {
      value /= 1024
      unit += 1
    }
    if unit == 0 || value >= 99.95 {
      append(digitsOf: Int(value.rounded()), to: &text)
    } else {
      let tenths = Int((value * 10).rounded())
      append(digitsOf: tenths / 10, to: &text)
      text.append(UInt8(ascii: "."))
      append(digitsOf: tenths % 10, to: &text)
    }
    text.append(UInt8(ascii: " "))
    text.append(contentsOf: units[unit].utf8)
  }

  /// Appends the digits of a small number that is at least 0.
  private static func append(digitsOf number: Int, to text: inout [UInt8]) {
    if number >= 10 { append(digitsOf: number / 10, to: &text) }
    text.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number % 10))
  }
}

extension UInt64 {
  /// Adds sizes that files only claim to have, as those with holes do: a sum that is too large for 64
  /// bits stays at the largest.
  public mutating func addClamping(_ size: UInt64) {
    let (sum, isTooLarge) = addingReportingOverflow(size)
    self = isTooLarge ? .max : sum
  }
}

extension Sequence<UInt64> {
  /// The sum of sizes that files only claim to have.
  public var clampedSum: UInt64 { reduce(into: 0) { $0.addClamping($1) } }
}

/// Bytes in words.
public enum ByteCount {
  private static let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]

  /// Bytes in the unit that leaves 1 to 1023 before the point: `1.2 GiB`, `312 MiB`, `17 B`.
  public static func text(_ bytes: UInt64) -> String {
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
}

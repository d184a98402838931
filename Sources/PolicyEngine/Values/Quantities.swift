/// Parses the sizes and durations of policy files.
public enum Quantity {
  /// Returns a size in bytes, or nil if it is invalid. K, M, G, T and KiB, MiB, GiB, TiB are powers
  /// of 1024, kB, MB, GB, TB powers of 1000; a number without a unit counts bytes.
  public static func bytes(_ text: String) -> Int64? {
    guard let (number, unit) = split(text) else { return nil }
    let scale: Int64? =
      switch unit {
      case "", "B": 1
      case "K", "KiB": 1 << 10
      case "M", "MiB": 1 << 20
      case "G", "GiB": 1 << 30
      case "T", "TiB": 1 << 40
      case "kB": 1_000
      case "MB": 1_000_000
      case "GB": 1_000_000_000
      case "TB": 1_000_000_000_000
      default: nil
      }
    return scale.flatMap { multiply(number, $0) }
  }

  /// Returns a duration such as `45s`, `30m`, `12h`, `31d` or `2w` in seconds, or nil if it is
  /// invalid.
  public static func seconds(_ text: String) -> Int64? {
    guard let (number, unit) = split(text) else { return nil }
    let scale: Int64? =
      switch unit {
      case "s": 1
      case "m": 60
      case "h": 3_600
      case "d": 86_400
      case "w": 604_800
      default: nil
      }
    return scale.flatMap { multiply(number, $0) }
  }

  private static func split(_ text: String) -> (Int64, String)? {
    let digits = text.prefix { $0.isASCII && $0.isWholeNumber }
    guard let number = Int64(digits) else { return nil }
    let unit = text.dropFirst(digits.count)
    return (number, String(unit.drop { $0 == " " }))
  }

  private static func multiply(_ number: Int64, _ scale: Int64) -> Int64? {
    let (product, overflow) = number.multipliedReportingOverflow(by: scale)
    return overflow ? nil : product
  }
}

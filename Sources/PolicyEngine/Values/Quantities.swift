/// Reads the sizes and spans of time that policy files write.
public enum Quantity {
  /// Bytes of a size: K, M, G, T and KiB, MiB, GiB, TiB count by 1024, kB, MB, GB, TB by 1000; a
  /// bare number is bytes.
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

  /// Seconds of a span: `45s`, `30m`, `12h`, `31d`, `2w`.
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

/// A span of calendar time for `--keep-within`: years, months, days and hours, such as `2y5m7d3h`.
package struct RetentionSpan: Hashable, Sendable {
  /// The number of each unit, in the order of `units`.
  private var numbers = [0, 0, 0, 0]

  private static let units: [Character] = ["y", "m", "d", "h"]
  /// The maximum number of one unit.
  private static let limit = 1_000_000

  /// Parses numbers of 0 to 1,000,000, each followed by `y`, `m`, `d` or `h`, each unit at most
  /// once. Returns nil for any other text.
  package init?(_ text: String) {
    var rest = text[...]
    var seen: Set<Int> = []
    while !rest.isEmpty {
      let digits = rest.prefix { $0.isASCII && $0.isNumber }
      rest = rest.dropFirst(digits.count)
      guard let number = Int(digits), number <= Self.limit, let letter = rest.popFirst(),
        let unit = Self.units.firstIndex(of: letter), seen.insert(unit).inserted
      else { return nil }
      numbers[unit] = number
    }
    if seen.isEmpty { return nil }
  }

  var years: Int { numbers[0] }
  var months: Int { numbers[1] }
  var days: Int { numbers[2] }
  var hours: Int { numbers[3] }

  /// Whether all numbers are 0.
  package var isZero: Bool { numbers.allSatisfy { $0 == 0 } }
}

extension RetentionSpan: CustomStringConvertible {
  /// The span in the form that is parsed, without units that are 0.
  package var description: String {
    let parts = zip(numbers, Self.units).filter { $0.0 > 0 }.map { "\($0.0)\($0.1)" }
    return parts.isEmpty ? "0h" : parts.joined()
  }
}

internal import SystemIO

extension PredicateEvaluation {
  /// Returns the result of a comparison of two values. NULL equals only NULL, and every other
  /// comparison with it is false.
  mutating func compare(
    _ left: PredicateValue, with right: PredicateValue, by comparison: PredicateComparison
  ) throws(PredicateFault) -> Bool {
    switch comparison.operation {
    case .equal: return try equal(left, right, by: comparison)
    case .unequal: return try !equal(left, right, by: comparison)
    case .less, .atMost, .greater, .atLeast: return try ordered(left, right, by: comparison)
    case .between:
      guard case .list(let bounds) = right, bounds.count == 2 else {
        throw fault("BETWEEN needs a list of two values", at: comparison.sign)
      }
      let low = try order(bounds[0], left, by: comparison) ?? 1
      let high = try order(left, bounds[1], by: comparison) ?? 1
      return low <= 0 && high <= 0
    case .in: return try contains(right, left, by: comparison)
    case .contains: return try contains(left, right, by: comparison)
    case .beginsWith, .endsWith, .like, .conformsTo, .equalsType:
      if left == .null || right == .null { return false }
      guard case .text(let first) = left, case .text(let second) = right else {
        throw unequalKinds(left, right, of: comparison)
      }
      return try compare(text: first, with: second, by: comparison)
    }
  }

  private func unequalKinds(
    _ left: PredicateValue, _ right: PredicateValue, of comparison: PredicateComparison
  ) -> PredicateFault {
    fault(
      "\(comparison.operation.rawValue) cannot compare \(left.shown) with \(right.shown)",
      at: comparison.sign)
  }

  // MARK: - Texts

  private mutating func compare(
    text: String, with other: String, by comparison: PredicateComparison
  ) throws(PredicateFault) -> Bool {
    switch comparison.operation {
    case .conformsTo:
      try count(bytes: text.utf8.count + other.utf8.count)
      return conforms(text, to: other)
    case .equalsType:
      try count(bytes: text.utf8.count + other.utf8.count)
      return ByteString(text).lowercasedASCII == ByteString(other).lowercasedASCII
    default: break
    }
    let (left, right) = (try folded(text, comparison), try folded(other, comparison))
    switch comparison.operation {
    case .beginsWith: return left.starts(with: right)
    case .endsWith: return left.count >= right.count && left.suffix(right.count) == right[...]
    default:
      try count(bytes: left.count * right.count)
      return Self.matches(left, pattern: right)
    }
  }

  /// Returns a text's bytes in the form that a comparison compares.
  private mutating func folded(
    _ text: String, _ comparison: PredicateComparison
  ) throws(PredicateFault) -> [UInt8] {
    try count(bytes: text.utf8.count)
    if comparison.ignoresMarks, !text.utf8.allSatisfy({ $0 < 0x80 }) {
      throw fault("the option 'd' is supported for ASCII texts only", at: comparison.sign)
    }
    return Array((comparison.ignoresCase ? text.lowercased() : text).utf8)
  }

  /// Whether a text matches a pattern with `*` for any bytes and `?` for one, in time proportional
  /// to the product of their lengths.
  private static func matches(_ text: [UInt8], pattern: [UInt8]) -> Bool {
    var (at, next, star, restart) = (0, 0, -1, 0)
    while at < text.count {
      if next < pattern.count, pattern[next] == UInt8(ascii: "*") {
        (star, restart) = (next, at)
        next += 1
      } else if next < pattern.count,
        pattern[next] == UInt8(ascii: "?") || pattern[next] == text[at]
      {
        at += 1
        next += 1
      } else if star >= 0 {
        restart += 1
        (at, next) = (restart, star + 1)
      } else {
        return false
      }
    }
    return pattern[next...].allSatisfy { $0 == UInt8(ascii: "*") }
  }

  // MARK: - Equality and order

  private mutating func equal(
    _ left: PredicateValue, _ right: PredicateValue, by comparison: PredicateComparison
  ) throws(PredicateFault) -> Bool {
    if case .text(let first) = left, case .text(let second) = right {
      return try folded(first, comparison) == folded(second, comparison)
    }
    if let first = left.number, let second = right.number { return first == second }
    if case .list(let list) = left { try count(list.count) }
    return left == right
  }

  private mutating func ordered(
    _ left: PredicateValue, _ right: PredicateValue, by comparison: PredicateComparison
  ) throws(PredicateFault) -> Bool {
    guard let order = try order(left, right, by: comparison) else { return false }
    switch comparison.operation {
    case .less: return order < 0
    case .atMost: return order <= 0
    case .greater: return order > 0
    default: return order >= 0
    }
  }

  /// Returns -1, 0 or 1 for the order of two values, or nil if one is NULL.
  private mutating func order(
    _ left: PredicateValue, _ right: PredicateValue, by comparison: PredicateComparison
  ) throws(PredicateFault) -> Int? {
    if left == .null || right == .null { return nil }
    if let first = left.number, let second = right.number {
      return first < second ? -1 : first == second ? 0 : 1
    }
    guard case .text(let first) = left, case .text(let second) = right else {
      throw unequalKinds(left, right, of: comparison)
    }
    try count(bytes: first.utf8.count + second.utf8.count)
    let (one, two) = (Array(first.utf8), Array(second.utf8))
    return one == two ? 0 : one.lexicographicallyPrecedes(two) ? -1 : 1
  }

  private mutating func contains(
    _ whole: PredicateValue, _ part: PredicateValue, by comparison: PredicateComparison
  ) throws(PredicateFault) -> Bool {
    switch (whole, part) {
    case (.null, _): return false
    case (.list(let list), _):
      try count(list.count)
      for element in list { if try equal(element, part, by: comparison) { return true } }
      return false
    case (.text(let text), .text(let other)):
      let (bytes, wanted) = (try folded(text, comparison), try folded(other, comparison))
      guard bytes.count >= wanted.count else { return false }
      try count(bytes: bytes.count * wanted.count)
      return (0...(bytes.count - wanted.count)).contains { bytes[$0...].starts(with: wanted) }
    case (.text, .null): return false
    default: throw unequalKinds(whole, part, of: comparison)
    }
  }
}

extension PredicateValue {
  /// The numeric value of a number or a Boolean, which are both compared as numbers; nil for other
  /// values.
  var number: Double? {
    switch self {
    case .number(let number): number
    case .bool(let value): value ? 1 : 0
    default: nil
    }
  }
}

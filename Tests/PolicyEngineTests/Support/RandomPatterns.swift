@testable import PolicyEngine

/// Generates patterns and paths from a few letters, so that they often match.
struct RandomPatterns {
  var random: SeededRandom

  init(seed: UInt64) { random = SeededRandom(seed: seed) }

  static let names = ["a", "b", "ab", "ba", "c", "a.b", "abc", "x"]

  mutating func pattern() -> String {
    let count = 1 + random.below(4)
    return (0..<count).map { _ in random.chance(25) ? "**" : component() }.joined(separator: "/")
  }

  mutating func component() -> String {
    switch random.below(12) {
    case 0: return "*"
    case 1: return "?"
    case 2: return "a*"
    case 3: return "*b"
    case 4: return "[ab]*"
    case 5: return "[!a]"
    case 6: return "{a,b}"
    case 7: return "{a*,x,}b"
    case 8: return "*a*b*"
    default: return random.pick(Self.names)
    }
  }

  mutating func path(maximum: Int = 5) -> [[UInt8]] {
    (0..<random.below(maximum + 1)).map { _ in Array(random.pick(Self.names).utf8) }
  }
}

/// Compares two sequences of symbols and stars: bytes of a name, or names of a path.
struct WildcardRelation {
  /// The number of elements of the outer pattern, and which of them are stars.
  let outer: Int
  let isOuterStar: (Int) -> Bool
  /// The number of elements of the inner pattern, and which of them are stars.
  let inner: Int
  let isInnerStar: (Int) -> Bool
  /// Whether an element of the outer pattern matches everything that an element of the inner one
  /// does.
  let covers: (_ outer: Int, _ inner: Int) -> Bool
  /// Whether an element of the outer pattern matches every symbol.
  let coversAny: (Int) -> Bool

  /// The maximum number of steps of a comparison, after which it returns false.
  private static let budget = 4_096

  private struct PositionPair: Hashable {
    let inner: Int
    let outer: [Int]
  }

  /// Whether the outer pattern matches every sequence that the inner one matches.
  ///
  /// Follows the inner pattern symbol by symbol, with all positions in the outer one that every
  /// sequence so far is certain to reach. True is therefore definite; false can be wrong.
  func includes() -> Bool {
    var seen: Set<PositionPair> = []
    var open = [PositionPair(inner: 0, outer: closed([0]))]
    while let pair = open.popLast() {
      guard !pair.outer.isEmpty, seen.count < Self.budget else { return false }
      guard seen.insert(pair).inserted else { continue }
      if pair.inner == inner {
        guard pair.outer.contains(outer) else { return false }
      } else if isInnerStar(pair.inner) {
        open.append(PositionPair(inner: pair.inner + 1, outer: pair.outer))
        open.append(PositionPair(inner: pair.inner, outer: step(pair.outer, coversAny)))
      } else {
        let next = step(pair.outer) { covers($0, pair.inner) }
        open.append(PositionPair(inner: pair.inner + 1, outer: next))
      }
    }
    return true
  }

  /// Returns the positions with those after stars, which can match nothing.
  private func closed(_ positions: [Int]) -> [Int] {
    var all = Set(positions)
    for position in positions {
      var next = position
      while next < outer, isOuterStar(next) {
        next += 1
        all.insert(next)
      }
    }
    return all.sorted()
  }

  private func step(_ positions: [Int], _ isCovered: (Int) -> Bool) -> [Int] {
    closed(
      positions.compactMap { position in
        guard position < outer else { return nil }
        if isOuterStar(position) { return position }
        return isCovered(position) ? position + 1 : nil
      })
  }
}

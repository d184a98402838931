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

  private struct Location: Hashable {
    let inner: Int
    let outer: [Int]
  }

  /// Whether the outer pattern matches every sequence that the inner one matches.
  ///
  /// Follows the inner pattern symbol by symbol, with all positions in the outer one that every
  /// sequence so far is certain to reach. True is therefore definite; false can be wrong.
  func includes() -> Bool {
    var seen: Set<Location> = []
    var open = [Location(inner: 0, outer: closed([0]))]
    while let place = open.popLast() {
      guard !place.outer.isEmpty, seen.count < Self.budget else { return false }
      guard seen.insert(place).inserted else { continue }
      if place.inner == inner {
        guard place.outer.contains(outer) else { return false }
      } else if isInnerStar(place.inner) {
        open.append(Location(inner: place.inner + 1, outer: place.outer))
        open.append(Location(inner: place.inner, outer: step(place.outer, coversAny)))
      } else {
        let next = step(place.outer) { covers($0, place.inner) }
        open.append(Location(inner: place.inner + 1, outer: next))
      }
    }
    return true
  }

  /// Returns the positions with those after stars, which can match nothing.
  private func closed(_ places: [Int]) -> [Int] {
    var all = Set(places)
    for place in places {
      var next = place
      while next < outer, isOuterStar(next) {
        next += 1
        all.insert(next)
      }
    }
    return all.sorted()
  }

  private func step(_ places: [Int], _ isCovered: (Int) -> Bool) -> [Int] {
    closed(
      places.compactMap { place in
        guard place < outer else { return nil }
        if isOuterStar(place) { return place }
        return isCovered(place) ? place + 1 : nil
      })
  }
}

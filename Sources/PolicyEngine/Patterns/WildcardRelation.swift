/// Compares two sequences of symbols and stars, whether of bytes in a name or of names in a path.
struct WildcardRelation {
  /// How many elements the outer pattern has, and which are stars.
  let outer: Int
  let isOuterStar: (Int) -> Bool
  /// How many elements the inner pattern has, and which are stars.
  let inner: Int
  let isInnerStar: (Int) -> Bool
  /// Whether an element of the outer pattern means all that one of the inner does.
  let covers: (_ outer: Int, _ inner: Int) -> Bool
  /// Whether an element of the outer pattern means every symbol.
  let coversAny: (Int) -> Bool

  /// How many steps a comparison may take before it gives up.
  private static let budget = 4_096

  private struct Location: Hashable {
    let inner: Int
    let outer: [Int]
  }

  /// Whether each sequence that the inner pattern means is one that the outer one means.
  ///
  /// The inner pattern is followed symbol by symbol, with all places in the outer one that every
  /// sequence so far is sure to have reached. So a yes is certain; a no is what comes of doubt too.
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

  /// The places with those behind stars, which may mean nothing.
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

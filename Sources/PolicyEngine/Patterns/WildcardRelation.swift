/// Compares two sequences of symbols and stars, whether of bytes in a name or of names in a path.
enum WildcardRelation {
  /// How many steps a comparison may take before it gives up.
  private static let budget = 4_096

  /// Whether each sequence that the inner pattern means is one that the outer one means.
  ///
  /// The inner pattern is followed symbol by symbol, with all places in the outer one that every
  /// sequence so far is sure to have reached. So a yes is certain; a no is what comes of doubt too.
  static func includes(
    outer: Int, isOuterStar: (Int) -> Bool, inner: Int, isInnerStar: (Int) -> Bool,
    covers: (_ outer: Int, _ inner: Int) -> Bool, coversAny: (Int) -> Bool
  ) -> Bool {
    struct Place: Hashable {
      let inner: Int
      let outer: [Int]
    }
    func closed(_ places: [Int]) -> [Int] {
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
    func step(_ places: [Int], _ isCovered: (Int) -> Bool) -> [Int] {
      var next: [Int] = []
      for place in places where place < outer {
        if isOuterStar(place) {
          next.append(place)
        } else if isCovered(place) {
          next.append(place + 1)
        }
      }
      return closed(next)
    }
    var seen: Set<Place> = []
    var open = [Place(inner: 0, outer: closed([0]))]
    while let place = open.popLast() {
      guard !place.outer.isEmpty, seen.count < budget else { return false }
      guard seen.insert(place).inserted else { continue }
      guard place.inner < inner else {
        guard place.outer.contains(outer) else { return false }
        continue
      }
      if isInnerStar(place.inner) {
        open.append(Place(inner: place.inner + 1, outer: place.outer))
        open.append(Place(inner: place.inner, outer: step(place.outer, coversAny)))
      } else {
        let next = step(place.outer) { covers($0, place.inner) }
        open.append(Place(inner: place.inner + 1, outer: next))
      }
    }
    return true
  }
}

/// An index by key over an append-only list, for plans that rarely look up elements but may do so
/// often. Each lookup indexes the elements appended since the last one, so n lookups take n steps
/// and a plan without lookups pays nothing.
struct AppendOnlyIndex<Key: Hashable> {
  private var places: [Key: Int] = [:]
  private var count = 0

  /// Returns the index of the last element with a key.
  mutating func place<Element>(
    of key: Key, in list: [Element], keys: (Element) -> some Sequence<Key>
  ) -> Int? {
    for place in count..<list.count {
      for key in keys(list[place]) { places[key] = place }
    }
    count = list.count
    return places[key]
  }
}

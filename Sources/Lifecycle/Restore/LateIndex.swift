/// Finds the elements of a list that only grows by their keys, where few plans ask and those may ask
/// often: what was appended since the last lookup is indexed then, so that n lookups cost n steps and a
/// plan that never asks pays nothing.
struct LateIndex<Key: Hashable> {
  private var places: [Key: Int] = [:]
  private var count = 0

  /// The place of the last element with a key.
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

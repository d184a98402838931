/// A least-recently-used cache of values whose total cost is bounded.
package struct CostBoundedCache<Key: Hashable, Value> {
  private struct Slot {
    let value: Value
    let cost: Int
    var lastUse: Int
  }

  /// The maximum total cost. One value that exceeds it alone is kept until the next one.
  package private(set) var capacity: Int
  private var slots: [Key: Slot] = [:]
  /// The total cost of all values.
  package private(set) var cost = 0
  private var uses = 0

  /// The number of values from which a quarter of the cost is removed at once, because finding the
  /// oldest ones looks at all.
  private static var manyValues: Int { 64 }

  /// Creates an empty cache.
  package init(capacity: Int) { self.capacity = capacity }

  /// Whether nothing is held.
  var isEmpty: Bool { slots.isEmpty }

  /// Whether the value of a key is held. This does not count as a use.
  func holds(_ key: Key) -> Bool { slots[key] != nil }

  /// Returns the value of a key, which counts as a use, or nil if it is not held.
  package mutating func value(_ key: Key) -> Value? {
    guard let index = slots.index(forKey: key) else { return nil }
    uses += 1
    slots.values[index].lastUse = uses
    return slots.values[index].value
  }

  /// Adds or replaces a value. Removes the values that were not used for the longest time if the
  /// cost exceeds the capacity.
  package mutating func insert(_ value: Value, for key: Key, cost added: Int) {
    uses += 1
    let slot = Slot(value: value, cost: added, lastUse: uses)
    if let before = slots.updateValue(slot, forKey: key) { cost -= before.cost }
    cost += added
    removeOldest()
  }

  /// Changes the capacity.
  mutating func setCapacity(_ capacity: Int) {
    self.capacity = capacity
    removeOldest()
  }

  private mutating func removeOldest() {
    guard cost > capacity, slots.count > 1 else { return }
    let most = slots.count > Self.manyValues ? capacity / 4 * 3 : capacity
    for (key, slot) in slots.sorted(by: { $0.value.lastUse < $1.value.lastUse }) {
      if cost <= most || slots.count == 1 { return }
      cost -= slot.cost
      slots[key] = nil
    }
  }
}

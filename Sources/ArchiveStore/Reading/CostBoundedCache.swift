/// A least-recently-used cache of values whose total cost is bounded.
package struct CostBoundedCache<Key: Hashable, Value> {
  private struct Slot {
    let value: Value
    let cost: Int
    var lastUse: Int
  }

  /// The maximum total cost. One value that exceeds it alone is kept until the next one.
  package let capacity: Int
  private var slots: [Key: Slot] = [:]
  /// The total cost of all values.
  package private(set) var cost = 0
  private var uses = 0

  /// Creates an empty cache.
  package init(capacity: Int) { self.capacity = capacity }

  /// Returns the value of a key, which counts as a use, or nil if it is not held.
  package mutating func value(_ key: Key) -> Value? {
    guard let index = slots.index(forKey: key) else { return nil }
    uses += 1
    slots.values[index].lastUse = uses
    return slots.values[index].value
  }

  /// Adds or replaces a value. Removes the values that were not used for the longest time if the
  /// cost exceeds the capacity: a quarter at once, since finding them looks at all.
  package mutating func insert(_ value: Value, for key: Key, cost added: Int) {
    uses += 1
    let slot = Slot(value: value, cost: added, lastUse: uses)
    if let before = slots.updateValue(slot, forKey: key) { cost -= before.cost }
    cost += added
    guard cost > capacity else { return }
    for (key, slot) in slots.sorted(by: { $0.value.lastUse < $1.value.lastUse }) {
      if cost <= capacity / 4 * 3 || slots.count == 1 { return }
      cost -= slot.cost
      slots[key] = nil
    }
  }
}

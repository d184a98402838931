/// A cache of state transitions by symbol; emptied when it is full.
struct TransitionTable: Sendable {
  private var slots: [Slot] = Array(repeating: Slot(), count: 256)
  private(set) var count = 0

  /// The maximum number of transitions before the cache is emptied, equal to 8 MiB.
  static let capacity = 1 << 18

  private struct Slot: Sendable {
    var symbol: UInt64 = 0
    var state: UInt32 = 0
    var target: UInt32 = StateRecord.unknown
  }

  /// Returns the symbol of a name that occurs in patterns.
  @inline(__always)
  static func literal(_ number: UInt32) -> UInt64 { 1 << 63 | UInt64(number) }

  /// The bit that marks a numbered set of globs. Without the top two bits, a symbol is a bit mask
  /// of globs.
  static let wide: UInt64 = 1 << 62

  @inline(__always)
  func find(_ state: UInt32, _ symbol: UInt64) -> UInt32? {
    let mask = slots.count - 1
    var index = Self.hash(state, symbol) & mask
    while slots[index].target != StateRecord.unknown {
      if slots[index].symbol == symbol, slots[index].state == state { return slots[index].target }
      index = (index + 1) & mask
    }
    return nil
  }

  mutating func insert(_ state: UInt32, _ symbol: UInt64, target: UInt32) {
    if count >= Self.capacity { removeAll() }
    if (count + 1) * 2 > slots.count { grow() }
    place(Slot(symbol: symbol, state: state, target: target))
    count += 1
  }

  mutating func removeAll() {
    slots = Array(repeating: Slot(), count: 256)
    count = 0
  }

  private mutating func grow() {
    let old = slots
    slots = Array(repeating: Slot(), count: old.count * 2)
    for slot in old where slot.target != StateRecord.unknown { place(slot) }
  }

  private mutating func place(_ slot: Slot) {
    let mask = slots.count - 1
    var index = Self.hash(slot.state, slot.symbol) & mask
    while slots[index].target != StateRecord.unknown { index = (index + 1) & mask }
    slots[index] = slot
  }

  @inline(__always)
  private static func hash(_ state: UInt32, _ symbol: UInt64) -> Int {
    let mixed = (symbol ^ UInt64(state) &* 0x9E37_79B9_7F4A_7C15) &* 0xD6E8_FEB8_6659_FD93
    return Int(truncatingIfNeeded: mixed >> 33)
  }
}

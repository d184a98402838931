/// A table of names with a number each, with lookup that does not allocate.
struct LiteralTable: Sendable {
  private var bytes: [UInt8] = []
  private var starts: [UInt32] = [0]
  /// The hash table: a name's number plus one, or 0 for an empty slot.
  private var slots: [UInt32] = Array(repeating: 0, count: 16)

  var count: Int { starts.count - 1 }

  /// Returns the bytes of a name.
  func name(_ number: UInt32) -> [UInt8] {
    Array(bytes[Int(starts[Int(number)])..<Int(starts[Int(number) + 1])])
  }

  /// Returns the length of a name in bytes.
  func length(_ number: UInt32) -> Int { Int(starts[Int(number) + 1] - starts[Int(number)]) }

  /// Returns the number of a name and adds the name if it is new.
  mutating func insert(_ name: [UInt8]) -> UInt32 {
    if let known = find(name.span) { return known }
    if (count + 1) * 2 > slots.count { grow() }
    let number = UInt32(count)
    bytes.append(contentsOf: name)
    starts.append(UInt32(bytes.count))
    place(number)
    return number
  }

  /// Returns the number of a name, or nil if the table does not contain it.
  @inline(__always)
  func find(_ name: Span<UInt8>) -> UInt32? {
    let mask = slots.count - 1
    var slot = Self.hash(name) & mask
    while slots[slot] != 0 {
      let number = slots[slot] - 1
      if isName(number, name) { return number }
      slot = (slot + 1) & mask
    }
    return nil
  }

  @inline(__always)
  private func isName(_ number: UInt32, _ name: Span<UInt8>) -> Bool {
    let start = Int(starts[Int(number)])
    guard Int(starts[Int(number) + 1]) - start == name.count else { return false }
    for index in 0..<name.count where bytes[start + index] != name[index] { return false }
    return true
  }

  private mutating func grow() {
    slots = Array(repeating: 0, count: slots.count * 2)
    for number in 0..<UInt32(count) { place(number) }
  }

  private mutating func place(_ number: UInt32) {
    let mask = slots.count - 1
    var slot = Self.hash(name(number).span) & mask
    while slots[slot] != 0 { slot = (slot + 1) & mask }
    slots[slot] = number + 1
  }

  /// FNV-1a with a final mixing step; names are short.
  @inline(__always)
  private static func hash(_ name: Span<UInt8>) -> Int {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for index in 0..<name.count { hash = (hash ^ UInt64(name[index])) &* 0x100_0000_01b3 }
    hash ^= hash >> 29
    return Int(truncatingIfNeeded: hash & 0x7fff_ffff)
  }
}

internal import SandboxModel

extension Classifier {
  /// The markers of a policy: the attributes that a walk looks for, and how marks apply.
  struct MarkerTable: Sendable {
    /// The names of marker attributes.
    let attributes: [([UInt8], MarkSet)]
    /// The markers for each container kind, by the index of the kind.
    let marksByKind: [UInt64]
    /// The markers that directories pass on to everything below.
    let inherited: UInt64
    /// Whether markers exist, whose effect can depend on a cache directory above.
    let asksForCaches: Bool

    init(_ policy: CompiledPolicy) {
      var attributes: [([UInt8], MarkSet)] = []
      var inherited: UInt64 = 0
      var byKind = [UInt64](repeating: 0, count: ContainerKind.allCases.count)
      for (index, marker) in policy.markers.enumerated() {
        let mark = MarkSet(marker: index)
        if let name = marker.linuxAttribute { Self.add(mark, for: name, to: &attributes) }
        if marker.isInherited { inherited |= mark.rawValue }
        for (number, kind) in ContainerKind.allCases.enumerated() where marker.kinds.contains(kind)
        {
          byKind[number] |= mark.rawValue
        }
      }
      self.attributes = attributes
      self.inherited = inherited
      marksByKind = byKind
      asksForCaches = !policy.markers.isEmpty
    }

    private static func add(_ mark: MarkSet, for name: String, to known: inout [([UInt8], MarkSet)])
    {
      let bytes = Array(name.utf8)
      if let index = known.firstIndex(where: { $0.0 == bytes }) {
        known[index].1.formUnion(mark)
      } else {
        known.append((bytes, mark))
      }
    }
  }

  /// The globs of a policy, indexed by first and last byte, so that few have to be tried for a
  /// name.
  struct GlobFilter: Sendable {
    private let globs: [Glob]
    /// For each byte, the globs whose names may begin with it.
    private var first = [UInt64](repeating: 0, count: 256)
    /// For each byte, the globs whose names may end with it.
    private var last = [UInt64](repeating: 0, count: 256)

    /// The maximum number of globs in a filter; two bits of a symbol hold its kind.
    static let maximumCount = 62

    /// Creates a filter, or returns nil if there are more than `maximumCount` globs.
    init?(_ globs: [Glob]) {
      guard globs.count <= Self.maximumCount else { return nil }
      self.globs = globs
      for (index, glob) in globs.enumerated() {
        for byte in glob.firstBytes.members { first[Int(byte)] |= 1 << UInt64(index) }
        for byte in glob.lastBytes.members { last[Int(byte)] |= 1 << UInt64(index) }
      }
    }

    /// Returns the globs in `live` that match a name, as a bit mask.
    @inline(__always)
    func matches(_ name: Span<UInt8>, among live: UInt64) -> UInt64 {
      guard name.count > 0 else { return 0 }
      var candidates = live & first[Int(name[0])] & last[Int(name[name.count - 1])]
      var matched: UInt64 = 0
      while candidates != 0 {
        let index = candidates.trailingZeroBitCount
        candidates &= candidates - 1
        if globs[index].matches(name) { matched |= 1 << UInt64(index) }
      }
      return matched
    }
  }

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
      insert(Slot(symbol: symbol, state: state, target: target))
      count += 1
    }

    mutating func removeAll() {
      slots = Array(repeating: Slot(), count: 256)
      count = 0
    }

    private mutating func grow() {
      let old = slots
      slots = Array(repeating: Slot(), count: old.count * 2)
      for slot in old where slot.target != StateRecord.unknown { insert(slot) }
    }

    private mutating func insert(_ slot: Slot) {
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
}

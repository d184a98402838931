internal import PolicyEngine
internal import SystemIO

/// The order in which units go: by the rule's order; apps over their quota first, by how much; the
/// longest unused first; then the largest; then by path (docs/purge.md, "Order").
struct PurgeOrder: Comparable {
  /// The rule's order, what is not over a quota, and the age, the first one in the highest bits.
  private let urgency: UInt64
  /// What is left to the largest size that there is.
  private let smallness: UInt64
  private let rank: UInt32
  private let place: UInt32

  private init(_ unit: PurgeUnit, _ place: Int, _ now: Timestamp) {
    let age = PurgeUnit.Age(unit, at: now).rawValue
    urgency =
      UInt64(unit.terms.order) << 48 | UInt64(UInt32.max - unit.overQuota) << 8
      | UInt64(UInt8(bitPattern: age))
    smallness = UInt64.max - unit.bytes
    rank = unit.rank
    self.place = UInt32(place)
  }

  static func < (left: Self, right: Self) -> Bool {
    if left.urgency != right.urgency { return left.urgency < right.urgency }
    if left.smallness != right.smallness { return left.smallness < right.smallness }
    return left.rank < right.rank
  }

  /// Sorts units; what they are compared by is small, and is worked out once for each.
  static func sort(_ units: inout [PurgeUnit], at now: Timestamp) {
    var order = units.indices.map { PurgeOrder(units[$0], $0, now) }
    order.sort()
    units = order.map { units[Int($0.place)] }
  }
}

internal import PolicyEngine
internal import SystemIO

/// The order in which units are deleted: by the rule's order; apps over their quota first, by the
/// excess; longest unused first; then the largest; then by path (docs/purge.md, "Order").
struct PurgeOrder: Comparable {
  /// The rule's order, the complement of the quota excess, and the age, most significant first.
  private let urgency: UInt64
  /// The complement of the size.
  private let smallness: UInt64
  private let rank: UInt32
  private let place: UInt32

  private init(_ unit: PurgeUnit, place: Int, at now: Timestamp) {
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

  /// Sorts units by keys that are computed once for each.
  static func sort(_ units: inout [PurgeUnit], at now: Timestamp) {
    var order = units.indices.map { PurgeOrder(units[$0], place: $0, at: now) }
    order.sort()
    units = order.map { units[Int($0.place)] }
  }
}

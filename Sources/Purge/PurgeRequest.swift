package import PolicyEngine
package import SystemIO

/// The request for a purge, with everything that its plan depends on besides the scan. The same
/// request on the same scan yields the same plan to the byte.
package struct PurgeRequest: Sendable {
  /// The amount to delete.
  package enum Goal: Sendable, Hashable {
    /// Free this number of additional bytes on each volume.
    case free(UInt64)
    /// Free space until this percentage of each volume is free.
    case untilFree(percent: Int)
    /// Delete everything that a level allows.
    case everything
    /// Delete what the policy's level of each volume requires. Volumes without a crossed level are
    /// skipped.
    case byPressure
  }

  package var goal: Goal
  /// The level whose orders and age apply; nil for the crossed level, or medium if the goal is a
  /// number.
  package var level: Pressure.Level?
  /// The time at which ages are computed.
  package var now: Timestamp
  /// The space of each volume of the device, by device number.
  package var spaces: [UInt64: VolumeSpace]
  /// The running parties, by the name that `PurgePlan.party(of:)` returns, with the reason.
  package var running: [ByteString: String] = [:]
  /// The bytes of files that share blocks with other files, by container and entry.
  var shared: [ByteString: [Int: UInt64]] = [:]
  /// The logical paths of the containers to purge; nil for all.
  package var only: Set<ByteString>?

  /// Creates a request.
  package init(
    _ goal: Goal, level: Pressure.Level? = nil, now: Timestamp = Host.now(),
    spaces: [UInt64: VolumeSpace]
  ) {
    self.goal = goal
    self.level = level
    self.now = now
    self.spaces = spaces
  }
}

/// The terms of a pressure level: the orders that it allows, and the minimum age.
package struct PurgeTerm: Sendable, Hashable {
  /// The level; nil for a policy without levels.
  package let level: Pressure.Level?
  /// The orders; nil for all.
  let orders: Set<UInt16>?
  /// The minimum time since the last use, in seconds.
  package let minimumAge: Int64

  init(_ pressure: Pressure) {
    (level, orders, minimumAge) = (pressure.level, pressure.orders, pressure.minimumAge)
  }

  private init() { (level, orders, minimumAge) = (nil, nil, 7 * PurgeUnit.Age.day) }

  /// The terms for a policy without levels: every order, unused for a week.
  static let unlevelled = PurgeTerm()

  func allows(_ unit: PurgeUnit, at now: Timestamp) -> Bool {
    (orders?.contains(unit.terms.order) ?? true) && unit.age(at: now) >= minimumAge
  }
}

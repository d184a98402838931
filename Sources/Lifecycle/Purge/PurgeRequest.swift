public import PolicyEngine
public import SystemIO

/// What a purge is asked to do, and all that its plan depends on besides the scan: so that the same
/// request on the same scan gives the same plan to the byte.
public struct PurgeRequest: Sendable {
  /// How much is to go.
  public enum Goal: Sendable, Hashable {
    /// So many bytes more are to be free on each volume.
    case free(UInt64)
    /// This part of each volume, in hundredths, is to be free.
    case untilFree(percent: Int)
    /// All that a level lets go.
    case everything
    /// What the policy's level of each volume asks for; nothing where none is crossed.
    case byPressure
  }

  public var goal: Goal
  /// The level whose orders and age hold; nil for the one that is crossed, or medium where the goal
  /// is a figure.
  public var level: PressureLevel?
  /// The time to which ages count.
  public var now: Timestamp
  /// The space of each volume that the device lies on, by device number.
  public var spaces: [UInt64: VolumeSpace]
  /// Which apps run, by the name that `PurgePlan.party(of:)` gives, and what says so.
  public var running: [ByteString: String] = [:]
  /// Bytes of files whose blocks other files have, too, by container and entry.
  var shared: [ByteString: [Int: UInt64]] = [:]
  /// The containers whose caches may go, by logical path; nil for all.
  public var only: Set<ByteString>?

  /// Makes a request.
  public init(
    _ goal: Goal, level: PressureLevel? = nil, now: Timestamp = Host.now(),
    spaces: [UInt64: VolumeSpace]
  ) {
    self.goal = goal
    self.level = level
    self.now = now
    self.spaces = spaces
  }
}

/// What a level of pressure lets go: which orders, and for how long unused.
public struct PurgeTerm: Sendable, Hashable {
  /// The level; nil for a policy without levels.
  public let level: PressureLevel?
  /// The orders; nil for all.
  let orders: Set<UInt16>?
  /// Seconds.
  public let minimumAge: Int64

  init(_ pressure: Pressure) {
    (level, orders, minimumAge) = (pressure.level, pressure.orders, pressure.minimumAge)
  }

  private init() { (level, orders, minimumAge) = (nil, nil, 7 * PurgeUnit.Age.day) }

  /// What holds where the policy has no levels: every order, a week unused.
  static let unlevelled = PurgeTerm()

  func lets(_ unit: PurgeUnit, at now: Timestamp) -> Bool {
    (orders?.contains(unit.terms.order) ?? true) && unit.age(at: now) >= minimumAge
  }
}

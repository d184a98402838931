public import ArchiveStore
internal import SandboxModel
public import SystemIO

/// The execution of a purge plan.
///
/// The units that meet a volume's goal are taken from the plan in order and deleted app by app and
/// directory by directory. A unit that cannot be deleted after all (the app has started, a file was
/// used) is replaced by the next units in the order. All work uses directory handles that are
/// verified to be the planned directories, so nothing is deleted through a symbolic link or on
/// another mount. A unit is deleted as a whole or not at all, whenever the program ends
/// (docs/purge.md). Not guaranteed: that an app that starts at the same moment finds all of its
/// files.
public struct PurgeOperation {
  let plan: PurgePlan
  let options: PurgeOptions

  /// Prepares the execution of a plan.
  public init(_ plan: PurgePlan, _ options: PurgeOptions = PurgeOptions()) {
    self.plan = plan
    self.options = options
  }

  /// Deletes the units. Returns the report, even after a request to stop.
  public func run() -> PurgeReport {
    var run = PurgeRun(plan, options)
    for number in plan.volumes.indices where !options.isStopping() { run.purge(volume: number) }
    return run.finished()
  }
}

/// The options of a purge, besides its plan.
public struct PurgeOptions: Sendable {
  /// Returns whether to end early. Called before each unit.
  public var isStopping: @Sendable () -> Bool
  /// The counters for progress reports.
  public var counters: ProgressCounters
  /// Returns the reason to consider a party running, or nil. Called before each party
  /// (`PurgePlan.party(of:)`).
  public var sign: @Sendable (ByteString, DeviceScan) -> String?
  /// Returns the space of the volume of a path. Called at the end.
  public var space: @Sendable (ByteString) -> VolumeSpace?

  /// Creates options.
  public init(
    isStopping: @escaping @Sendable () -> Bool = { false },
    counters: ProgressCounters = ProgressCounters(),
    sign: @escaping @Sendable (ByteString, DeviceScan) -> String? = { party, scan in
      PurgeRequest.sign(of: party, in: scan)
    },
    space: @escaping @Sendable (ByteString) -> VolumeSpace? = { path in
      try? Directory.open(resolved: path).space()
    }
  ) {
    self.isStopping = isStopping
    self.counters = counters
    self.sign = sign
    self.space = space
  }
}

extension ScanOptions {
  /// Returns the options of a scan for a purge that counts the visited directories.
  public static func forPurge(_ following: PurgeOptions) -> ScanOptions {
    forPurge {
      following.counters.didHandle(files: 1)
      return following.isStopping()
    }
  }
}

/// The result of a purge.
public struct PurgeReport: Sendable {
  /// The results by volume, in the plan's order.
  public internal(set) var volumes: [Volume] = []
  /// The totals by party, in the order in which they were purged.
  public internal(set) var parties: [Party] = []
  /// The running parties, which were skipped, with the reason.
  public internal(set) var running: [PathRemark] = []
  /// The units that differ from the plan and stay, by their logical paths.
  public internal(set) var changed: [PathRemark] = []
  /// The units that could not be deleted.
  public internal(set) var failed: [PathRemark] = []
  public internal(set) var isInterrupted = false

  /// The totals of a party.
  public struct Party: Sendable, Hashable {
    public let name: ByteString
    public internal(set) var units = 0
    public internal(set) var files = 0
    public internal(set) var bytes: UInt64 = 0
  }

  /// The result for a volume.
  public struct Volume: Sendable, Hashable {
    /// The path of a container on the volume.
    public let path: ByteString
    /// The bytes that the volume gained.
    public internal(set) var freed: UInt64 = 0
    public internal(set) var units = 0
    public internal(set) var files = 0
    /// The goal in bytes; nil to delete everything that may be deleted.
    public let goal: UInt64?
    /// The free bytes before and after, as available to an unprivileged user.
    public let before: UInt64
    public internal(set) var after: UInt64?

    /// The bytes missing from the goal.
    public var missing: UInt64 {
      guard let goal, goal > freed else { return 0 }
      return goal - freed
    }
  }

  /// The bytes that all volumes gained.
  public var freed: UInt64 { volumes.reduce(0) { $0 + $1.freed } }

  /// Whether every volume's goal was met.
  public var meetsGoal: Bool { volumes.allSatisfy { $0.missing == 0 } }
}

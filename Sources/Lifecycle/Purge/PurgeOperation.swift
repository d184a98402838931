public import ArchiveStore
internal import SandboxModel
public import SystemIO

/// Carries out a purge's plan.
///
/// What a volume's goal asks for is taken from the plan in its order, and done app by app and directory by
/// directory; what turns out not to go (an app that began to run, a file that was used meanwhile) is
/// made up for by what comes next in the order. Everything is done by directory handles that are
/// accepted only if they are the planned folders: nothing is deleted through a link or on another
/// mount. A unit goes whole or stays whole, whenever the program ends (docs/purge.md). Not
/// guaranteed: that an app which starts in the same moment misses nothing.
public struct PurgeOperation {
  let plan: PurgePlan
  let options: PurgeOptions

  /// Prepares to carry out a plan.
  public init(_ plan: PurgePlan, _ options: PurgeOptions = PurgeOptions()) {
    self.plan = plan
    self.options = options
  }

  /// Deletes; gives what became of it, also when it was asked to stop.
  public func run() -> PurgeReport {
    var run = PurgeRun(plan, options)
    for number in plan.volumes.indices where !options.isStopping() { run.purge(volume: number) }
    return run.finished()
  }
}

/// What a purge is told besides its plan.
public struct PurgeOptions: Sendable {
  /// Asked before each unit: whether to end early.
  public var isStopping: @Sendable () -> Bool
  /// Where it tells how far it is.
  public var counters: ProgressCounters
  /// Asked before each party (`PurgePlan.party(of:)`): what says that it runs, nil when it does not.
  public var sign: @Sendable (ByteString, DeviceScan) -> String?
  /// Asked for the space of the volume of a path, at the end.
  public var space: @Sendable (ByteString) -> VolumeSpace?

  /// Makes options.
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
  /// The options of a scan for a purge that counts the directories that it comes to.
  public static func forPurge(_ following: PurgeOptions) -> ScanOptions {
    forPurge {
      following.counters.didHandle(files: 1)
      return following.isStopping()
    }
  }
}

/// What became of a purge.
public struct PurgeReport: Sendable {
  /// What became of each volume, in the plan's order.
  public internal(set) var volumes: [Volume] = []
  /// What went of each party, in the order in which they were purged.
  public internal(set) var parties: [Party] = []
  /// The parties that run and were left alone, with what says so.
  public internal(set) var running: [PathRemark] = []
  /// Units that are no longer as planned and stay, by their logical paths.
  public internal(set) var changed: [PathRemark] = []
  /// Units that could not be deleted.
  public internal(set) var failed: [PathRemark] = []
  public internal(set) var isInterrupted = false

  /// What went of a party.
  public struct Party: Sendable, Hashable {
    public let name: ByteString
    public internal(set) var units = 0
    public internal(set) var files = 0
    public internal(set) var bytes: UInt64 = 0
  }

  /// What became of a volume.
  public struct Volume: Sendable, Hashable {
    /// A container on it.
    public let path: ByteString
    /// Bytes that the volume gave back.
    public internal(set) var freed: UInt64 = 0
    public internal(set) var units = 0
    public internal(set) var files = 0
    /// Bytes that were to be gained; nil for all that may go.
    public let goal: UInt64?
    /// Bytes free before and after, for a user without privileges.
    public let before: UInt64
    public internal(set) var after: UInt64?

    /// Bytes of the goal that are missing.
    public var missing: UInt64 {
      guard let goal, goal > freed else { return 0 }
      return goal - freed
    }
  }

  /// Bytes that all volumes gave back.
  public var freed: UInt64 { volumes.reduce(0) { $0 + $1.freed } }

  /// Whether every volume's goal was met.
  public var meetsGoal: Bool { volumes.allSatisfy { $0.missing == 0 } }
}

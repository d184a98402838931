package import ArchiveStore
package import DeviceScan
internal import SandboxModel
package import SystemIO

/// The execution of a purge plan.
///
/// The units that meet a volume's goal are taken from the plan in order and deleted app by app and
/// directory by directory. A unit that cannot be deleted after all (the app has started, a file was
/// used) is replaced by the next units in the order. All work uses directory handles that are
/// verified to be the planned directories, so nothing is deleted through a symbolic link or on
/// another mount. A unit is deleted as a whole or not at all, whenever the program ends
/// (docs/purge.md). Not guaranteed: that an app that starts at the same moment finds all of its
/// files.
package struct PurgeOperation {
  let plan: PurgePlan
  let options: PurgeOptions

  /// Prepares the execution of a plan.
  package init(_ plan: PurgePlan, _ options: PurgeOptions = PurgeOptions()) {
    self.plan = plan
    self.options = options
  }

  /// Deletes the units. Returns the report, even after a request to stop.
  package func run() -> PurgeReport {
    var run = PurgeRun(plan, options)
    for number in plan.volumes.indices where !options.isStopping() { run.purge(volume: number) }
    return run.finished()
  }
}

/// The options of a purge, besides its plan.
package struct PurgeOptions: Sendable {
  /// Returns whether to end early. Called before each unit.
  package var isStopping: @Sendable () -> Bool
  /// The counters for progress reports.
  package var counters: ProgressCounters
  /// Returns the reason to consider a party running, or nil. Called before each party
  /// (`PurgePlan.party(of:)`).
  package var sign: @Sendable (ByteString, DeviceScan) -> String?
  /// Returns the space of the volume of a path. Called at the end.
  package var space: @Sendable (ByteString) -> VolumeSpace?

  /// Creates options.
  package init(
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
  package static func forPurge(_ following: PurgeOptions) -> ScanOptions {
    forPurge {
      following.counters.didHandle(files: 1)
      return following.isStopping()
    }
  }
}

/// The result of a purge.
package struct PurgeReport: Sendable {
  /// The results by volume, in the plan's order.
  package internal(set) var volumes: [Volume] = []
  /// The totals by party, in the order in which they were purged.
  package internal(set) var parties: [Party] = []
  /// The running parties, which were skipped, with the reason.
  package internal(set) var running: [PathRemark] = []
  /// The units that differ from the plan and stay, by their logical paths.
  package internal(set) var changed: [PathRemark] = []
  /// The units that could not be deleted.
  package internal(set) var failed: [PathRemark] = []
  package internal(set) var isInterrupted = false

  /// The totals of a party.
  package struct Party: Sendable, Hashable {
    package let name: ByteString
    package internal(set) var units = 0
    package internal(set) var files = 0
    package internal(set) var bytes: UInt64 = 0
  }

  /// The result for a volume.
  package struct Volume: Sendable, Hashable {
    /// The path of a container on the volume.
    package let path: ByteString
    /// The bytes that the volume gained.
    package internal(set) var freed: UInt64 = 0
    package internal(set) var units = 0
    package internal(set) var files = 0
    /// The goal in bytes; nil to delete everything that may be deleted.
    package let goal: UInt64?
    /// The free bytes before and after, as available to an unprivileged user.
    package let before: UInt64
    package internal(set) var after: UInt64?

    /// The bytes missing from the goal.
    package var missing: UInt64 {
      guard let goal, goal > freed else { return 0 }
      return goal - freed
    }
  }

  /// The bytes that all volumes gained.
  package var freed: UInt64 { volumes.reduce(0) { $0 + $1.freed } }

  /// Whether every volume's goal was met.
  package var meetsGoal: Bool { volumes.allSatisfy { $0.missing == 0 } }
}

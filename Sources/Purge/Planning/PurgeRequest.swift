package import ArchiveStore
package import DeviceScan
internal import DeviceTransaction
package import PolicyEngine
internal import SandboxModel
package import SystemIO

/// The request for a purge, with everything that its plan depends on besides the scan. The same
/// request on the same scan yields an identical plan.
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

extension PurgeRequest {
  /// Returns a request with the current state that it depends on besides the scan: the space of the
  /// volumes, the running apps, and the blocks that files share.
  ///
  /// - Parameter following: the options with the counters, and the check whether to stop.
  /// - Throws: `OperationError` if the space of a volume cannot be read; `interrupted`.
  static func now(
    _ goal: Goal, level: Pressure.Level? = nil, for scan: DeviceScan, now: Timestamp = Host.now(),
    following: PurgeOptions = PurgeOptions()
  ) throws(OperationError) -> PurgeRequest {
    var request: PurgeRequest
    do throws(SystemError) {
      request = PurgeRequest(goal, level: level, now: now, spaces: try spaces(scan))
      request.shared = try shared(scan, following)
    } catch { throw OperationError(error) }
    if following.isStopping() { throw interrupted }
    request.running = RunningParties.find(in: scan)
    return request
  }

  /// The error after a request to stop.
  package static let interrupted = OperationError(
    .interrupted, "the purge was interrupted: nothing was deleted", hint: "run it again")

  /// Returns the space of each volume with containers.
  static func spaces(_ scan: DeviceScan) throws(SystemError) -> [UInt64: VolumeSpace] {
    var spaces: [UInt64: VolumeSpace] = [:]
    for container in scan.containers {
      guard let root = container.entries.first, spaces[root.status.identity.device] == nil else {
        continue
      }
      let directory = try Directory.open(resolved: container.container.absolutePath)
      spaces[root.status.identity.device] = try directory.space()
    }
    return spaces
  }

  // MARK: - Shared blocks

  /// Returns the bytes of candidate files that share blocks with other files, on volumes that
  /// support this.
  private static func shared(
    _ scan: DeviceScan, _ following: PurgeOptions
  ) throws(SystemError) -> [ByteString: [Int: UInt64]] {
    var found: [ByteString: [Int: UInt64]] = [:]
    for container in scan.containers {
      let root = try Directory.open(resolved: container.container.absolutePath)
      guard try root.mayShareBlocks() else { continue }
      let bytes = SharedBytes.measure(container, in: root, following: following)
      if !bytes.isEmpty { found[container.container.logicalPrefix] = bytes }
    }
    return found
  }

  /// The bytes that candidate files of a container share with other files.
  private enum SharedBytes {
    /// Measures the shared bytes by entry. A file that cannot be examined is treated as sharing
    /// nothing.
    static func measure(
      _ scan: ContainerScan, in root: consuming Directory, following: PurgeOptions
    ) -> [Int: UInt64] {
      var found: [Int: UInt64] = [:]
      var cursor = DirectoryCursor(root: root)
      var pending: [(entry: Int, depth: Int)] = [(0, 0)]
      while let (directory, depth) = pending.popLast(), !following.isStopping() {
        following.counters.begin(scan.logicalPath(directory))
        guard directory == 0 || enter(directory, at: depth, in: scan, with: &cursor) else {
          continue
        }
        for child in scan.entries[directory].children {
          let entry = scan.entries[child]
          if entry.status.kind == .directory, !entry.status.isMountPoint {
            pending.append((child, depth + 1))
          } else if entry.status.kind == .file, entry.status.allocated > 0,
            entry.verdicts.keep.purge != .never
          {
            let name = scan.name(child)
            let bytes = cursor.withDirectory { directory in try? directory.file(name).sharedBytes()
            }
            if let bytes, bytes > 0 { found[child] = bytes }
          }
        }
      }
      return found
    }

    private static func enter(
      _ directory: Int, at depth: Int, in scan: ContainerScan, with cursor: inout DirectoryCursor
    ) -> Bool {
      do throws(SystemError) {
        try cursor.ascend(to: depth - 1)
        try cursor.descend(scan.name(directory), scan.entries[directory].status.identity)
        return true
      } catch { return false }
    }
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
      RunningParties.sign(of: party, in: scan)
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
  static func forPurge(_ following: PurgeOptions) -> ScanOptions {
    forPurge {
      following.counters.didHandle(files: 1)
      return following.isStopping()
    }
  }
}

/// The parties of a device that are running. A purge skips them.
enum RunningParties {
  /// Returns the running parties among those with candidates, each with the reason.
  static func find(in scan: DeviceScan) -> [ByteString: String] {
    let parties = parties(scan)
    if parties.isEmpty { return [:] }
    let (apps, concurrent) = (RunningApps(scan), ConcurrentOperations(scan.device))
    var running: [ByteString: String] = [:]
    for party in parties {
      running[party] =
        concurrent.sign(among: scan.containers(of: party)) ?? apps.sign(of: party)?.text
    }
    return running
  }

  /// Returns the parties with candidates, in the order of their containers.
  private static func parties(_ scan: DeviceScan) -> [ByteString] {
    var (parties, seen): ([ByteString], Set<ByteString>) = ([], [])
    for container in scan.containers
    where container.entries.contains(where: { $0.verdicts.keep.purge != .never }) {
      let party = PurgePlan.party(of: container.container)
      if seen.insert(party).inserted { parties.append(party) }
    }
    return parties
  }

  /// Returns the reason to consider a party running now, or nil. A party is running if an app, or
  /// another operation of this program, uses any of its containers or, for a group, a container of
  /// one of its members.
  static func sign(of party: ByteString, in scan: DeviceScan) -> String? {
    let concurrent = ConcurrentOperations(scan.device)
    if let sign = concurrent.sign(among: scan.containers(of: party)) { return sign }
    let apps = scan.apps(with: party)
    let wanted = scan.containers.filter { apps.contains(PurgePlan.party(of: $0.container)) }
    let part = DeviceScan(
      device: scan.device, policy: scan.policy, began: scan.began, containers: wanted,
      isInterrupted: false, marks: scan.marks, options: scan.options)
    return RunningApps.signs(in: part).first?.text
  }

  /// Operations of this program on an app, in progress or interrupted. A purge skips the app until
  /// they have ended or were recovered. The purge itself takes no lock, because a lock file would
  /// remain and would need space on a volume that may be full; instead, each deletion is checked
  /// against the scan.
  private struct ConcurrentOperations {
    private let root: ByteString
    /// The subjects of interrupted operations, each with the kind of the operation.
    private var interrupted: [ByteString: String] = [:]
    /// The reason why the journal cannot be read.
    private var trouble: String?

    init(_ device: Device) {
      root = device.root
      do throws(OperationError) {
        for operation in try InterruptedOperation.all(on: root) {
          for subject in operation.record.subjects {
            interrupted[subject] = operation.operation
          }
        }
      } catch { trouble = error.description }
    }

    /// Returns the reason if an operation is using one of the containers, or nil if none is.
    func sign(among containers: [Container]) -> String? {
      if let trouble { return trouble }
      let subjects = Set(containers.map(\.logicalPrefix.subject)).sorted()
      for subject in subjects {
        if let operation = interrupted[subject] {
          return "an interrupted \(operation) of '\(subject)' needs 'sandboxctl recover'"
        }
      }
      return AppLocks.heldLocks(among: subjects, root: root).map {
        "another operation on '\($0)' is in progress"
      }
    }
  }
}

extension DeviceScan {
  /// Returns the containers of a party.
  fileprivate func containers(of party: ByteString) -> [Container] {
    containers.map(\.container).filter { PurgePlan.party(of: $0) == party }
  }

  /// Returns a party and, if it is a group, the apps that share the group.
  fileprivate func apps(with party: ByteString) -> Set<ByteString> {
    var apps: Set<ByteString> = [party]
    for scan in containers where scan.container.kind == .group {
      guard PurgePlan.party(of: scan.container) == party else { continue }
      apps.formUnion(device.members(of: scan.container).map(\.app.identifier.bytes))
    }
    return apps
  }
}

extension RunningApps {
  /// Returns the first sign that a party is running, or nil.
  fileprivate func sign(of party: ByteString) -> Sign? {
    let apps = scan.apps(with: party)
    return signs { apps.contains(PurgePlan.party(of: $0)) }.first
  }
}

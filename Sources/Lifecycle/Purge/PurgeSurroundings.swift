internal import ArchiveStore
public import PolicyEngine
internal import SandboxModel
public import SystemIO

extension PurgeRequest {
  /// A request with what it depends on besides the scan as it is now: the volumes' space, which apps
  /// run, and what files share with others.
  ///
  /// - Parameter following: told of what is looked at, and asked whether to stop.
  /// - Throws: when a volume cannot be asked; `interrupted`.
  public static func now(
    _ goal: Goal, level: PressureLevel? = nil, for scan: DeviceScan, now: Timestamp = Host.now(),
    following: PurgeOptions = PurgeOptions()
  ) throws(LifecycleError) -> PurgeRequest {
    var request: PurgeRequest
    do throws(SystemError) {
      request = PurgeRequest(goal, level: level, now: now, spaces: try spaces(scan))
      request.shared = try shared(scan, following)
    } catch { throw LifecycleError(error) }
    if following.isStopping() { throw interrupted }
    request.running = running(scan)
    return request
  }

  /// How a look that was asked to stop ends.
  public static let interrupted = LifecycleError(
    .interrupted, "the purge was interrupted: nothing was deleted", hint: "run it again")

  /// The space of each volume that containers lie on.
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

  // MARK: - Running apps

  /// The parties that run, of those that have something that may go, each with what says so.
  private static func running(_ scan: DeviceScan) -> [ByteString: String] {
    let parties = parties(scan)
    if parties.isEmpty { return [:] }
    let (apps, rivals) = (RunningApps(scan), ConcurrentOperations(scan.device))
    var running: [ByteString: String] = [:]
    for party in parties {
      running[party] = rivals.sign(among: scan.containers(of: party)) ?? apps.sign(of: party)?.text
    }
    return running
  }

  /// The parties that have something that may go, in the order of their containers.
  private static func parties(_ scan: DeviceScan) -> [ByteString] {
    var (parties, seen): ([ByteString], Set<ByteString>) = ([], [])
    for container in scan.containers
    where container.entries.contains(where: { $0.verdicts.keep.purge != .never }) {
      let party = PurgePlan.party(of: container.container)
      if seen.insert(party).inserted { parties.append(party) }
    }
    return parties
  }

  /// What says that a party runs at this moment: any of its containers is in use, of a group one of
  /// its members', by an app or by another operation of this program.
  public static func sign(of party: ByteString, in scan: DeviceScan) -> String? {
    let rivals = ConcurrentOperations(scan.device)
    if let sign = rivals.sign(among: scan.containers(of: party)) { return sign }
    let apps = scan.apps(with: party)
    let wanted = scan.containers.filter { apps.contains(PurgePlan.party(of: $0.container)) }
    let part = DeviceScan(
      device: scan.device, policy: scan.policy, began: scan.began, containers: wanted,
      isInterrupted: false, marks: scan.marks, options: scan.options)
    return RunningApps.signs(in: part).first?.text
  }

  // MARK: - Shared blocks

  /// Bytes of files that may go whose blocks others have, too, on volumes that can share them.
  private static func shared(
    _ scan: DeviceScan, _ following: PurgeOptions
  ) throws(SystemError) -> [ByteString: [Int: UInt64]] {
    var found: [ByteString: [Int: UInt64]] = [:]
    for container in scan.containers {
      let root = try Directory.open(resolved: container.container.absolutePath)
      guard try root.mayShareBlocks() else { continue }
      let bytes = SharedBytes.measure(container, root, following)
      if !bytes.isEmpty { found[container.container.logicalPrefix] = bytes }
    }
    return found
  }
}

extension DeviceScan {
  /// The containers of a party.
  fileprivate func containers(of party: ByteString) -> [Container] {
    containers.map(\.container).filter { PurgePlan.party(of: $0) == party }
  }

  /// A party, and the apps that share a group with it that is a party of its own.
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
  /// What says that a party runs.
  fileprivate func sign(of party: ByteString) -> Sign? {
    let apps = scan.apps(with: party)
    return signs { apps.contains(PurgePlan.party(of: $0)) }.first
  }
}

/// Asks the files of a container that may go which of their bytes others have, too.
private enum SharedBytes {
  /// What cannot be asked counts as a file's own.
  static func measure(
    _ scan: ContainerScan, _ root: consuming Directory, _ following: PurgeOptions
  ) -> [Int: UInt64] {
    var found: [Int: UInt64] = [:]
    var ladder = DirectoryLadder(root: root)
    var pending: [(entry: Int, depth: Int)] = [(0, 0)]
    while let (directory, depth) = pending.popLast(), !following.isStopping() {
      following.counters.begin(scan.logicalPath(directory))
      guard directory == 0 || enter(directory, depth, scan, &ladder) else { continue }
      for child in scan.entries[directory].children {
        let entry = scan.entries[child]
        if entry.status.kind == .directory, !entry.status.isMountPoint {
          pending.append((child, depth + 1))
        } else if entry.status.kind == .file, entry.status.allocated > 0,
          entry.verdicts.keep.purge != .never
        {
          let name = scan.name(child)
          let bytes = ladder.withDirectory { directory in try? directory.file(name).sharedBytes() }
          if let bytes, bytes > 0 { found[child] = bytes }
        }
      }
    }
    return found
  }

  private static func enter(
    _ directory: Int, _ depth: Int, _ scan: ContainerScan, _ ladder: inout DirectoryLadder
  ) -> Bool {
    do throws(SystemError) {
      try ladder.ascend(to: depth - 1)
      try ladder.descend(scan.name(directory), scan.entries[directory].status.identity)
      return true
    } catch { return false }
  }
}

internal import ArchiveStore
package import DeviceScan
package import PolicyEngine
internal import SandboxModel
package import SystemIO

extension PurgeRequest {
  /// Returns a request with the current state that it depends on besides the scan: the space of the
  /// volumes, the running apps, and the blocks that files share.
  ///
  /// - Parameter following: the options with the counters, and the check whether to stop.
  /// - Throws: `OperationError` if the space of a volume cannot be read; `interrupted`.
  package static func now(
    _ goal: Goal, level: Pressure.Level? = nil, for scan: DeviceScan, now: Timestamp = Host.now(),
    following: PurgeOptions = PurgeOptions()
  ) throws(OperationError) -> PurgeRequest {
    var request: PurgeRequest
    do throws(SystemError) {
      request = PurgeRequest(goal, level: level, now: now, spaces: try spaces(scan))
      request.shared = try shared(scan, following)
    } catch { throw OperationError(error) }
    if following.isStopping() { throw interrupted }
    request.running = running(scan)
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

  // MARK: - Running apps

  /// Returns the running parties among those with candidates, each with the reason.
  private static func running(_ scan: DeviceScan) -> [ByteString: String] {
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
  package static func sign(of party: ByteString, in scan: DeviceScan) -> String? {
    let concurrent = ConcurrentOperations(scan.device)
    if let sign = concurrent.sign(among: scan.containers(of: party)) { return sign }
    let apps = scan.apps(with: party)
    let wanted = scan.containers.filter { apps.contains(PurgePlan.party(of: $0.container)) }
    let part = DeviceScan(
      device: scan.device, policy: scan.policy, began: scan.began, containers: wanted,
      isInterrupted: false, marks: scan.marks, options: scan.options)
    return RunningApps.signs(in: part).first?.text
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

/// The bytes that candidate files of a container share with other files.
private enum SharedBytes {
  /// Measures the shared bytes by entry. A file that cannot be examined is treated as sharing
  /// nothing.
  static func measure(
    _ scan: ContainerScan, in root: consuming Directory, following: PurgeOptions
  ) -> [Int: UInt64] {
    var found: [Int: UInt64] = [:]
    var ladder = DirectoryCursor(root: root)
    var pending: [(entry: Int, depth: Int)] = [(0, 0)]
    while let (directory, depth) = pending.popLast(), !following.isStopping() {
      following.counters.begin(scan.logicalPath(directory))
      guard directory == 0 || enter(directory, at: depth, in: scan, with: &ladder) else { continue }
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
    _ directory: Int, at depth: Int, in scan: ContainerScan, with ladder: inout DirectoryCursor
  ) -> Bool {
    do throws(SystemError) {
      try ladder.ascend(to: depth - 1)
      try ladder.descend(scan.name(directory), scan.entries[directory].status.identity)
      return true
    } catch { return false }
  }
}

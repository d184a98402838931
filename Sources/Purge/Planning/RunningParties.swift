internal import ArchiveStore
internal import DeviceScan
internal import DeviceTransaction
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

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
  /// they have ended or were recovered. The purge itself takes no lock, since a lock file would
  /// remain and needs space on a volume that may be full; instead, each deletion is checked against
  /// the scan.
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

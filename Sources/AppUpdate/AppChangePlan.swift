internal import AppPackages
package import ArchiveStore
package import DeviceScan
internal import DeviceTransaction
package import PolicyEngine
package import Restore
package import SandboxModel
package import SystemIO

/// The plan for an app and its containers, derived from a scan, the policy and a request without
/// any change to the device. Equal inputs yield equal plans.
package struct AppChangePlan: Sendable {
  package let request: AppChangeRequest
  /// The app in its current state; nil if the device does not know it.
  package let present: App?
  /// The reasons that forbid the plan. If there are any, the rest of the plan is not valid.
  package internal(set) var refusals: [Refusal] = []
  /// The planned change of each container of the app, of its extensions and of its groups, in the
  /// order of their logical paths.
  package internal(set) var containers: [PlannedContainer] = []
  /// The data that a snapshot of the app does not contain. Commands that rely on a snapshot print
  /// it.
  package internal(set) var excludedData: [Exclusion] = []
  /// Notes that forbid nothing.
  package internal(set) var notes: [PathRemark] = []
  /// The commands of the platform's own program, if it manages the apps; nothing is executed then.
  package internal(set) var commands: [String] = []
  /// The restore from a snapshot, for an app that is rolled back to an earlier version.
  package internal(set) var restore: DeviceRestorePlan?
  /// The logical paths of data that the user created since that snapshot and would lose.
  package internal(set) var newer: [ByteString] = []
  /// The current content of the app's containers.
  let scan: DeviceScan

  package var device: Device { scan.device }

  /// Whether another program installs the apps of the layout, so that this one only reports its
  /// commands.
  package var isSimulated: Bool { device.layout == .flatpak || device.layout == .snap }

  /// The app's logical path.
  package var path: ByteString { LogicalContainer.app(request.app) }

  /// The new version and build: those of the package, or of the snapshot that a rollback restores;
  /// nil if there is none.
  package var arriving: (version: ByteString?, build: ByteString?)? {
    if let package = request.package { return (package.version, package.build) }
    let stored = restore?.snapshot.snapshot.apps.first {
      ByteString($0.identifier) == request.app.bytes
    }
    return stored.map { ($0.version.map { ByteString($0) }, $0.build.map { ByteString($0) }) }
  }

  /// The subjects to lock: the app, and the groups that change.
  package var subjects: [ByteString] {
    let changing = containers.filter { $0.action.isExchange || $0.action == .restore }
    return Set([path] + changing.map(\.path.subject)).sorted()
  }

  /// Returns the running processes of the app. Each call examines the system, as listed in the
  /// directory `proc`.
  package func runningProcesses(in proc: ByteString = Processes.proc) -> [RunningApps.Sign] {
    RunningApps.signs(in: scan, proc: proc)
  }

  /// The policy of the plan.
  package var policy: CompiledPolicy { scan.policy }

  /// Whether a snapshot is made first: not if there is no data, and not for a reinstallation that
  /// replaces nothing.
  package var makesSnapshot: Bool {
    request.savesFirst && !isSimulated && !scan.containers.isEmpty
      && (request.change != .reinstall || takesAway)
  }

  /// The upper bound of what the snapshot stores, and so of the space that it needs in a repository
  /// without any of the data; nil if no snapshot is made.
  package var snapshotBound: EntryTotals? { makesSnapshot ? scan.storageBound : nil }

  /// The data that a snapshot of the app does not contain, by class, largest class first.
  package var notHeldTotals: [(dataClass: DataClass, totals: EntryTotals)] {
    var sums: [DataClass: EntryTotals] = [:]
    for entry in scan.containers.flatMap(\.entries) where entry.selection == .excluded {
      sums[entry.verdicts.keep.dataClass, default: EntryTotals()].add(entry.status)
    }
    return Self.sorted(sums.filter { $0.value.files > 0 })
  }

  /// Returns the files and bytes with a planned outcome, by class, largest class first.
  package func totals(_ outcome: DataOutcome) -> [(dataClass: DataClass, totals: EntryTotals)] {
    var sums: [DataClass: EntryTotals] = [:]
    for path in containers.flatMap(\.paths) where path.outcome == outcome {
      sums[path.dataClass, default: EntryTotals()].add(path.totals)
    }
    return Self.sorted(sums)
  }

  /// The data restored from the trash of an update, by class, largest class first.
  package var returnTotals: [(dataClass: DataClass, totals: EntryTotals)] {
    var sums: [DataClass: EntryTotals] = [:]
    for item in containers.flatMap(\.returns) {
      sums[item.dataClass, default: EntryTotals()].add(item.totals)
    }
    return Self.sorted(sums)
  }

  private static func sorted(
    _ sums: [DataClass: EntryTotals]
  ) -> [(dataClass: DataClass, totals: EntryTotals)] {
    sums.map { (dataClass: $0.key, totals: $0.value) }.sorted {
      ($1.totals.bytes, $0.dataClass.rawValue) < ($0.totals.bytes, $1.dataClass.rawValue)
    }
  }
}

/// A reason that forbids a plan.
package struct Refusal: Sendable, Hashable {
  /// The reason as a code for programs.
  package let code: Code
  /// The reason as text that follows "cannot update 'x': ".
  package let reason: String
  /// The suggested action.
  package let hint: String?

  init(_ code: Code, _ reason: String, hint: String? = nil) {
    self.code = code
    self.reason = reason
    self.hint = hint
  }

  /// The code of a refusal.
  package enum Code: String, CaseIterable, Sendable, Hashable {
    /// The app is not installed, or the device does not know it.
    case notInstalled = "not-installed"
    /// The app is already installed.
    case installed
    /// The package is for another platform or contains another app.
    case wrongPackage = "wrong-package"
    /// The package has an earlier version.
    case downgrade
    /// An extension has a different build than its app.
    case extensions
    /// A container cannot be moved from its location, or its new location is occupied.
    case place
    /// There is no snapshot to roll back to.
    case noSnapshot = "no-snapshot"
    /// Data that the user created since would be lost.
    case newerData = "newer-data"
    /// The layout has no apps.
    case layout
    /// A volume of the device has too little free space.
    case noRoom = "no-room"
  }
}

/// The planned change of a container as a whole.
package enum ContainerAction: String, CaseIterable, Sendable, Hashable {
  /// It stays at its location.
  case keep
  /// It moves to another directory with its content, by one rename.
  case move
  /// The content of the package or snapshot replaces it; the old container moves to the trash.
  case replace
  /// It is created.
  case make
  /// It is moved from the safe harbor to its location.
  case adopt
  /// It moves to the trash.
  case remove
  /// It is copied for another revision.
  case copy
  /// Its content is restored from a snapshot.
  case restore
}

/// The planned change of one container.
package struct PlannedContainer: Sendable {
  /// The logical path.
  package let path: ByteString
  package let logical: LogicalContainer
  package let action: ContainerAction
  /// Its current directory, absolute; for a macOS bundle the bundle itself.
  package let from: ByteString?
  /// Its directory after the operation.
  package let to: ByteString?
  /// The planned outcomes of its content: the topmost paths of one outcome and class, each with
  /// everything below it except paths listed separately.
  package internal(set) var paths: [PlannedPath] = []
  /// Absolute links that name a container which moves to another directory, with their new targets.
  package internal(set) var links: [PlannedLink] = []
  /// Absolute links to other targets, which do not change.
  package internal(set) var foreignLinks: [PathRemark] = []
  /// The entries to move to the trash, if the container as a whole stays.
  var drops: [PlannedDrop] = []
  /// The index of the container in the plan's scan.
  var scanned: Int?
  /// The entries from outside that move into it when it is created.
  package internal(set) var moves: [PlannedMove] = []
  /// The entries from outside that cannot be moved, with the reason.
  package internal(set) var notMoved: [PathRemark] = []
  /// The entries restored from the trash of the update that is rolled back.
  package internal(set) var returns: [PlannedTrashRestore] = []
  /// The paths in it that become links to the same paths of the home directory.
  var ownLinks: [ByteString] = []
  /// The directory that one rename puts in place: the container's own, or the one above it if that
  /// does not exist either.
  var top: ByteString?

  init(_ logical: LogicalContainer, _ action: ContainerAction, from: ByteString?, to: ByteString?) {
    path = logical.prefix
    self.logical = logical
    self.action = action
    self.from = from
    self.to = to
  }
}

/// The planned outcome of a path.
package enum DataOutcome: String, CaseIterable, Sendable, Hashable {
  /// It stays with the app, as the platform guarantees.
  case carried
  /// It stays with the app here, but the platform does not guarantee it.
  case atRisk = "at-risk"
  /// It moves to the trash.
  case dropped
  /// A new entry replaces it.
  case replaced
  /// It is restored from a snapshot to a path with no entry.
  case restored
}

/// A path of a container with its planned outcome, which applies to everything below it that is not
/// listed separately.
package struct PlannedPath: Sendable, Hashable {
  /// The logical path.
  package let path: ByteString
  package let outcome: DataOutcome
  package let dataClass: DataClass
  package internal(set) var totals = EntryTotals()
}

/// A link that is rewritten because the container that it names moves to another directory.
package struct PlannedLink: Sendable, Hashable {
  /// The link's logical path.
  package let path: ByteString
  package let before: ByteString
  package let after: ByteString
  /// Its path in the container.
  let inner: ByteString
  /// The link as the scan found it.
  let status: FileStatus
}

/// An entry of a container that moves to the trash with everything below it.
package struct PlannedDrop: Sendable, Hashable {
  /// Its entry in the scan.
  let entry: Int
  /// Its path in the container.
  let inner: ByteString
  /// Whether an empty directory replaces it.
  let leavesEmptyDirectory: Bool
}

extension ContainerAction {
  /// Whether the container as a whole moves or is replaced.
  var isExchange: Bool { self != .keep && self != .copy && self != .restore }
}

internal import AppPackages
package import ArchiveStore
internal import DeviceDiscovery
package import DeviceScan
package import DeviceTransaction
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
  /// Of a rollback: what the update moved to the trash and cannot be read, so that it is not
  /// restored.
  package internal(set) var unreadTrash: [PathRemark] = []
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
  package var isSimulated: Bool { device.layout.installer != nil }

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

  /// Refuses a running app, unless the request is forced.
  func requireStopped() throws(OperationError) {
    if request.isForced { return }
    let signs = runningProcesses()
    if signs.isEmpty { return }
    let shown = signs.prefix(5).map(\.text).joined(separator: "; ")
    let more = signs.count > 5 ? "; and \(signs.count - 5) more" : ""
    throw OperationError(
      .failed, code: .appRunning, request.change.verb, subject: request.app,
      reason: "\(shown)\(more)",
      hint: "close the app and try again, or add '--force'")
  }

  /// The policy of the plan.
  package var policy: CompiledPolicy { scan.policy }

  /// Whether a snapshot is made first: not if there is no data, and not for a reinstallation that
  /// replaces nothing.
  package var makesSnapshot: Bool {
    request.savesFirst && !isSimulated && !scan.containers.isEmpty
      && (request.change != .reinstall || takesAway)
  }

  /// Whether anything is replaced, moved or removed.
  var takesAway: Bool { containers.contains { [.remove, .replace, .move].contains($0.action) } }

  /// The upper limit on what the snapshot stores, and therefore on the space that it needs in a
  /// repository without any of the data; nil if no snapshot is made.
  package var snapshotBound: EntryTotals? { makesSnapshot ? scan.storageBound : nil }

  /// Adds a reason that forbids the plan.
  mutating func refuse(_ code: Refusal.Code, _ reason: String, hint: String? = nil) {
    refusals.append(Refusal(code, reason, hint: hint))
  }

  /// The data that a snapshot of the app does not contain, by class, largest class first.
  package var notHeldTotals: [(dataClass: DataClass, totals: EntryTotals)] {
    var sums: [DataClass: EntryTotals] = [:]
    for entry in scan.containers.flatMap(\.entries) where entry.selection == .excluded {
      sums[entry.verdicts.keep.dataClass, default: EntryTotals()].add(entry.status)
    }
    return Self.sorted(sums.filter { $0.value.files > 0 })
  }

  /// The files of the snapshot of a rollback that the policy does not restore.
  package var omitted: RestoreTotals { restore?.total(\.omitted) ?? RestoreTotals() }

  /// Returns the files and bytes with a planned outcome, by class, largest class first.
  package func totals(_ outcome: DataOutcome) -> [(dataClass: DataClass, totals: EntryTotals)] {
    var sums: [DataClass: EntryTotals] = [:]
    for path in containers.flatMap(\.paths) where path.outcome == outcome {
      sums[path.dataClass, default: EntryTotals()].add(path.totals)
    }
    return Self.sorted(sums)
  }

  /// The data restored from the trash of an update, by class, largest class first.
  package var trashRestoreTotals: [(dataClass: DataClass, totals: EntryTotals)] {
    var sums: [DataClass: EntryTotals] = [:]
    for item in containers.flatMap(\.trashRestores) {
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
      case location = "place"
      /// There is no snapshot to roll back to.
      case noSnapshot = "no-snapshot"
      /// Data that the user created since would be lost.
      case newerData = "newer-data"
      /// The layout has no apps.
      case layout
      /// A volume of the device has too little free space.
      case noRoom = "no-room"

      /// The code of the error with which the refusal ends an operation.
      var errorCode: ErrorCode {
        switch self {
        case .notInstalled: .appNotInstalled
        case .installed: .appInstalled
        case .wrongPackage: .wrongPackage
        case .downgrade: .downgradeRefused
        case .extensions: .extensionMismatch
        case .location: .invalidTarget
        case .noSnapshot: .noUpdateSnapshot
        case .newerData: .newerData
        case .layout: .layoutUnsupported
        case .noRoom: .noSpace
        }
      }
    }
  }
}

// MARK: - Making a plan

extension AppChangePlan {
  /// Plans a request. Changes nothing.
  ///
  /// - Parameter scan: the scan of the app's containers and of the groups that it may share
  ///   (`AppChangePlan.isConcerned`), with the policy that applies.
  package static func make(_ scan: DeviceScan, _ request: AppChangeRequest) -> AppChangePlan {
    AppChangePlanner(scan, request).plan()
  }

  /// Whether an operation on an app examines a container of a device.
  package static func isConcerned(
    _ container: Container, by app: BundleIdentifier, on device: Device
  ) -> Bool {
    if container.owner == app { return true }
    guard container.kind == .group,
      let present = device.apps.first(where: { $0.identifier == app })
    else { return false }
    return present.groups.contains { $0.group == container.identifier }
  }

  /// Plans the return to the state before an app's last update: the previous bundle, and the data
  /// that the request selects. Changes nothing.
  ///
  /// - Parameter stored: the snapshot made before the update (`stateBefore`).
  /// - Throws: `OperationError`, `StoreError`.
  static func rollback(
    _ scan: DeviceScan, _ request: AppChangeRequest, to stored: StoredSnapshot?,
    from reader: RepositoryReader?
  ) throws -> AppChangePlan {
    try AppChangePlanner(scan, request).rollback(to: stored, from: reader)
  }

  /// Returns the newest snapshot that was made before an update of the app on this device, or nil
  /// if there is none.
  static func stateBefore(
    _ app: BundleIdentifier, on device: Device, among snapshots: [StoredSnapshot]
  ) -> StoredSnapshot? {
    let source = SourceIdentity.digest(of: device)
    let bundle = LogicalContainer.bundle(LogicalName(app.bytes)).prefix
    return snapshots.last { stored in
      stored.snapshot.reason == .preUpdate && stored.snapshot.source == source
        && stored.snapshot.device.containers.contains { $0.path == bundle }
    }
  }
}

// MARK: - Space

extension AppChangePlan {
  static let roomHint =
    "free space on that volume, for example with 'sandboxctl purge' or 'sandboxctl trash empty'"

  /// Returns the space needed and the room on the volumes, read from the system with each call.
  ///
  /// - Parameter reader: the repository of a plan that restores data.
  package func volumeNeeds(from reader: RepositoryReader? = nil) -> [VolumeNeed] {
    isSimulated ? [] : VolumeNeeds(self, from: reader).all
  }

  /// Returns a refusal if the package or the restored data does not fit on the device's volumes
  /// now; nil if it does. It is read from the system with each call, so it is not one of the plan's
  /// own refusals.
  ///
  /// - Parameter reader: the repository of a plan that restores data.
  package func missingRoom(from reader: RepositoryReader? = nil) -> Refusal? {
    let needs = volumeNeeds(from: reader)
    guard let need = needs.first(where: { $0.verdict == .lacksRoom }), let reason = need.shortage
    else { return nil }
    return Refusal(.noRoom, "in '\(need.directory)' \(reason)", hint: Self.roomHint)
  }
}

extension VolumeNeeds {
  /// Computes the needs of an app change: of its package and of the snapshot that it restores.
  package init(_ plan: AppChangePlan, from reader: RepositoryReader? = nil) {
    self.init(of: (plan.restore?.parts ?? []).map(\.plan), from: reader)
    guard let package = plan.request.package,
      let to = plan.containers.first(where: { $0.logical.kind == .bundle && $0.to != nil })?.to
    else { return }
    add(at: to.parent) { _ in (package.size.allocated, UInt64(package.size.entries)) }
  }
}

package import AppPackages
internal import ArchiveStore
internal import Codecs
internal import DeviceDiscovery
internal import DeviceScan
internal import DeviceTransaction
internal import PolicyEngine
internal import Restore
package import SandboxModel
package import SystemIO

/// A planner for all six operations; each adds its changes of containers.
struct AppChangePlanner {
  let scan: DeviceScan
  let request: AppChangeRequest
  var device: Device { scan.device }
  let present: App?

  init(_ scan: DeviceScan, _ request: AppChangeRequest) {
    self.scan = scan
    self.request = request
    present = scan.device.apps.first { $0.identifier == request.app }
  }

  func plan() -> AppChangePlan {
    var plan = AppChangePlan(request: request, present: present, scan: scan)
    plan.excludedData = scan.exclusions()
    if device.layout == .folder {
      plan.refuse(.layout, "a plain directory has no apps")
      return plan
    }
    switch request.change {
    case .install, .update, .reinstall: planExchange(&plan)
    case .offload, .uninstall: planRemoval(&plan)
    case .rollback: break
    }
    plan.containers.sort { $0.path < $1.path }
    return plan
  }

  /// Returns the policy's terms for containers of a kind.
  func terms(_ kind: ContainerKind) -> ContainerTerms {
    scan.policy.containers[kind] ?? ContainerTerms()
  }

  // MARK: - Containers

  /// Returns the plan for a container that stays at its location with its content.
  func keeping(_ number: Int) -> PlannedContainer {
    let found = scan.containers[number]
    let home = found.container.home
    var planned = PlannedContainer(found.container.logical, .keep, from: home, to: home)
    planned.scanned = number
    planned.paths = DataOutcomes(keeping: found).paths
    return planned
  }

  /// Returns the plan for a container that moves to the trash as a whole.
  func removing(_ number: Int) -> PlannedContainer {
    let found = scan.containers[number]
    var planned = PlannedContainer(
      found.container.logical, .remove, from: found.container.home, to: nil)
    planned.scanned = number
    planned.paths = DataOutcomes(found, all: .dropped).paths
    return planned
  }

  /// Refuses to move containers that are reached through a link, are mount points, or cannot be
  /// read.
  func refuseImmovable(_ plan: inout AppChangePlan) {
    for planned in plan.containers where planned.action != .keep && planned.action != .copy {
      guard let number = planned.scanned else { continue }
      let container = scan.containers[number].container
      let named =
        container.path.isAbsolute ? container.path : device.root.appending(container.path)
      let status = scan.containers[number].entries.first?.status
      let reason: String? =
        if !container.isReadable || status == nil {
          "it cannot be read"
        } else if named != container.absolutePath {
          "it is reached through a link; its location is '\(container.absolutePath)'"
        } else if status?.isMountPoint == true {
          "another volume is mounted there"
        } else if container.logical.instance != nil {
          "another container has the same identity"
        } else {
          nil
        }
      guard let reason else { continue }
      plan.refuse(.location, "'\(planned.path)' cannot be moved: \(reason)")
    }
  }
}

// MARK: - Saved containers

extension AppChangePlanner {
  /// Refuses to create a container in place of a saved one that exists and cannot be opened: the
  /// app would begin with an empty container, and a later installation would not attach the other.
  func refuseUnreadable(_ saved: [LogicalContainer], _ plan: inout AppChangePlan) {
    for container in saved where device.container(container) == nil {
      let harbor = SafeHarbor.path(for: container.prefix, root: device.root)
      do throws(SystemError) {
        _ = try Directory.open(resolved: harbor)
      } catch {
        if error.isMissing { continue }
        plan.refuse(
          .location, "its saved container '\(harbor)' cannot be opened: \(error.reason)",
          hint: "make it readable; or move it away, and restore its data after the installation")
      }
    }
  }
}

// MARK: - Links that stay unchanged

extension AppChangePlanner {
  /// Adds a note for each link that leads from a container that stays, such as a group, into one
  /// that moves: only links in the moved containers are rewritten.
  func recordBrokenLinks(_ anchors: LinkAnchors, _ plan: inout AppChangePlan) {
    if !plan.containers.contains(where: { $0.action == .move }) { return }
    for planned in plan.containers where planned.action == .keep {
      guard let number = planned.scanned else { continue }
      let found = scan.containers[number]
      guard let root = try? Directory.open(resolved: found.container.absolutePath) else { continue }
      var cursor = DirectoryCursor(root: root)
      for (index, entry) in found.entries.enumerated() where entry.status.kind == .symlink {
        let inner = found.path(index)
        let target = try? cursor.withDirectory(at: inner.components.dropLast()) {
          directory throws(SystemError) in try directory.target(of: inner.lastComponent ?? "")
        }
        guard let target, case .own(let after) = anchors.target(of: target) else { continue }
        plan.notes.append(
          PathRemark(
            path: found.logicalPath(index),
            remark: "it points to '\(target)', which moves to '\(after)'; the link is not changed"))
      }
    }
  }
}

// MARK: - Offload and uninstall

/// Offload and uninstall: the policy's `containers` selects the containers to remove. A group is
/// removed only if no other app is known, declared or suspected to share it.
extension AppChangePlanner {
  func planRemoval(_ plan: inout AppChangePlan) {
    refuseAbsent(&plan)
    for number in scan.containers.indices {
      plan.containers.append(remaining(number, &plan) ? keeping(number) : removing(number))
    }
    refuseOutside(&plan)
    refuseImmovable(&plan)
    if plan.isSimulated { plan.commands = platformCommands }
  }

  private func refuseAbsent(_ plan: inout AppChangePlan) {
    let isInstalled = present?.isInstalled ?? false
    if request.change == .offload, !isInstalled, !plan.isSimulated {
      let hasData = present != nil
      plan.refuse(
        .notInstalled,
        hasData
          ? "the app is not installed; only its data is present"
          : "the device has no app '\(request.app)'",
        hint: hasData
          ? "use 'sandboxctl reinstall' to restore its bundle"
          : "'sandboxctl apps' lists the apps")
    }
    if request.change == .uninstall, present == nil {
      plan.refuse(
        .notInstalled, "the device has no app or data of '\(request.app)'",
        hint: "'sandboxctl apps' lists the apps")
    }
  }

  /// Returns whether a container stays. Adds a note with the reason for a group that could be
  /// removed.
  private func remaining(_ number: Int, _ plan: inout AppChangePlan) -> Bool {
    let container = scan.containers[number].container
    let terms = terms(container.kind)
    if request.change == .offload { return terms.offload ?? .keep == .keep }
    switch terms.uninstall ?? .keep {
    case .keep: return true
    case .remove: return container.owner != request.app
    case .removeWithLastKnownMember:
      guard let reason = reasonToKeep(container) else { return false }
      plan.notes.append(PathRemark(path: container.logicalPrefix, remark: "it is kept: \(reason)"))
      return true
    }
  }

  /// Returns the reason to keep a group after the app is removed, or nil if the app is the last
  /// known member.
  ///
  /// An offloaded app has no bundle that declares its groups, so it may share any group. While
  /// there is one, every group that no other app is known to share is kept.
  private func reasonToKeep(_ group: Container) -> String? {
    let own = present?.groups.first { $0.group == group.identifier }
    guard let own, own.isKnown else { return "it is not known whether the app shares it" }
    let others = device.members(of: group).map(\.app.identifier).filter { $0 != request.app }
    if let other = others.first {
      let more = others.count > 1 ? " and \(others.count - 1) more" : ""
      return "'\(other)'\(more) may share it"
    }
    let unknown = device.apps.first {
      !$0.isInstalled && $0.identifier != request.app && $0.groups.allSatisfy { !$0.isKnown }
    }
    return unknown.map { "'\($0.identifier)' is not installed and may share it" }
  }

  /// Refuses to remove containers outside the device, such as a program in a system directory.
  private func refuseOutside(_ plan: inout AppChangePlan) {
    for planned in plan.containers where planned.action == .remove {
      guard let number = planned.scanned, !plan.isSimulated else { continue }
      let container = scan.containers[number].container
      guard container.path.isAbsolute else { continue }
      plan.refuse(
        .location, "'\(planned.path)' is outside the device, at '\(container.absolutePath)'",
        hint: "remove it there yourself; its data is on the device")
    }
  }
}

// MARK: - The platform's own program

extension AppChangePlanner {
  /// The commands to run if the platform's own program installs and removes apps. There are none
  /// for an app whose identifier would obscure what a command does.
  var platformCommands: [String] {
    guard ShellWord.isPlainArgument(request.app.bytes) else { return [] }
    let app = ShellWord.text(request.app.bytes)
    switch device.layout {
    case .flatpak: return flatpak(request.change, of: app, on: device, identifier: request.app)
    case .snap: return snap(request.change, app)
    case .android: return android(request.change, app)
    case .coreSimulator, .macOS, .systemd, .xdg, .folder: return []
    }
  }

  private func flatpak(
    _ change: AppChange, of app: String, on device: Device, identifier: BundleIdentifier
  ) -> [String] {
    let installation = device.apps.first { $0.identifier == identifier }?.installation
    let scope = installation?.scope == .system ? "--system" : "--user"
    switch change {
    case .install, .reinstall: return ["flatpak install \(scope) \(app)"]
    case .update: return ["flatpak update \(scope) \(app)"]
    case .rollback:
      let origin = installation?.origin.flatMap { ShellWord.isPlainArgument($0) ? $0 : nil }
      return [
        "flatpak remote-info --log \(ShellWord.text(origin ?? "<remote>")) \(app)",
        "flatpak update \(scope) --commit=<commit> \(app)",
      ]
    case .offload, .uninstall: return ["flatpak uninstall \(scope) \(app)"]
    }
  }

  /// Returns the commands of a computer to which the device is connected (developer.android.com,
  /// Android Debug Bridge). The package file is the user's.
  private func android(_ change: AppChange, _ app: String) -> [String] {
    switch change {
    case .install, .reinstall: ["adb install <file>"]
    case .update: ["adb install -r <file>"]
    case .rollback: ["adb install -r -d <file>"]
    case .offload: ["adb uninstall -k \(app)"]
    case .uninstall: ["adb uninstall \(app)"]
    }
  }

  private func snap(_ change: AppChange, _ app: String) -> [String] {
    switch change {
    case .install, .reinstall: ["snap install \(app)"]
    case .update: ["snap refresh \(app)"]
    case .rollback: ["snap revert \(app)"]
    case .offload: ["snap disable \(app)"]
    case .uninstall: ["snap remove \(app)"]
    }
  }
}

extension Container {
  /// Its directory; for a bundle that shares a directory with others, the bundle itself.
  var home: ByteString { member.map { absolutePath.appending($0) } ?? absolutePath }
}

/// An operation on an app; the raw value is the name of the command.
package enum AppChange: String, CaseIterable, Sendable, Hashable {
  case install
  case update
  case rollback
  case offload
  case reinstall
  case uninstall
}

/// A request for an operation on an app.
///
/// The request, the state of the device and the policy determine an `AppChangePlan`, which
/// describes all changes. An `AppChangeOperation` executes the plan under the journal and returns
/// an `AppChangeReport`.
package struct AppChangeRequest: Sendable {
  package let change: AppChange
  /// The app.
  package let app: BundleIdentifier
  /// The package to install, for the operations that install one.
  package var package: AppPackage?
  /// Whether an older version may replace a newer one.
  package var allowsDowngrade = false
  /// Whether data that the platform may discard is removed, as if the platform had done so.
  package var isStrict = false
  /// The data of an app that is rolled back. Nil means the data from before the update, unless the
  /// user has created data since.
  package var data: DataChoice?
  /// Whether groups shared with other apps are rolled back too.
  package var withGroups = false
  /// Whether the app may be running.
  package var isForced = false
  /// Whether a snapshot of the current state is made first.
  package var savesFirst = true
  /// The start time.
  package var time: Timestamp
  /// The seed for the names of new containers. Equal seeds yield equal plans.
  package var seed: [UInt8]

  /// Creates a request.
  package init(
    _ change: AppChange, of app: BundleIdentifier, package: AppPackage? = nil,
    time: Timestamp = Host.now(), seed: [UInt8] = Array(Host.randomHex(bytes: 16).utf8)
  ) {
    self.change = change
    self.app = app
    self.package = package
    self.time = time
    self.seed = seed
  }

  /// Returns the directory name of a new container, on platforms that name containers by UUID.
  func uuid(for container: LogicalContainer) -> ByteString {
    Device.uuid(of: Blake2b.hash(seed + container.prefix.bytes).bytes)
  }

  /// The data of an app that is rolled back to an earlier version.
  package enum DataChoice: String, CaseIterable, Sendable, Hashable {
    /// The data from before the update.
    case before
    /// The current data.
    case now
    /// The current data, with missing and older files restored from before the update.
    case merge
  }
}

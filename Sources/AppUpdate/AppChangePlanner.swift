internal import ArchiveStore
package import DeviceScan
internal import PolicyEngine
internal import Restore
package import SandboxModel
internal import SystemIO

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
}

/// A planner for all six operations; each adds its changes of containers.
package struct AppChangePlanner {
  let scan: DeviceScan
  let request: AppChangeRequest
  var device: Device { scan.device }
  let present: App?

  package init(_ scan: DeviceScan, _ request: AppChangeRequest) {
    self.scan = scan
    self.request = request
    present = scan.device.apps.first { $0.identifier == request.app }
  }

  func plan() -> AppChangePlan {
    var plan = AppChangePlan(request: request, present: present, scan: scan)
    plan.excludedData = scan.exclusions()
    if device.layout == .folder {
      plan.refusals.append(Refusal(.layout, "a plain directory has no apps"))
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
      plan.refusals.append(Refusal(.place, "'\(planned.path)' cannot be moved: \(reason)"))
    }
  }
}

extension Container {
  /// Its directory; for a bundle that shares a directory with others, the bundle itself.
  var home: ByteString { member.map { absolutePath.appending($0) } ?? absolutePath }
}

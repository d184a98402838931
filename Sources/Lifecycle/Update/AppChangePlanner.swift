internal import ArchiveStore
internal import PolicyEngine
public import SandboxModel
internal import SystemIO

extension AppChangePlan {
  /// Plans what is asked for; nothing is changed.
  ///
  /// - Parameter scan: what is in the app's containers and in the groups that it may share
  ///   (`AppChangePlan.isConcerned`), by the policy that decides.
  public static func make(_ scan: DeviceScan, _ request: AppChangeRequest) -> AppChangePlan {
    AppChangePlanner(scan, request).plan()
  }

  /// Which containers of a device an operation on an app looks at.
  public static func isConcerned(
    _ container: Container, by app: BundleIdentifier, on device: Device
  ) -> Bool {
    if container.owner == app { return true }
    guard container.kind == .group,
      let present = device.apps.first(where: { $0.identifier == app })
    else { return false }
    return present.groups.contains { $0.group == container.identifier }
  }
}

/// Plans what becomes of an app: one way for all six operations; each adds what it does to containers.
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
    plan.notHeld = ExclusionSummary.make(scan)
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

  /// What the policy does to containers of a kind.
  func terms(_ kind: ContainerKind) -> ContainerTerms {
    scan.policy.containers[kind] ?? ContainerTerms()
  }

  // MARK: - Containers

  /// A container that stays where it is, with what is in it.
  func keeping(_ number: Int) -> PlannedContainer {
    let found = scan.containers[number]
    let home = found.container.home
    var planned = PlannedContainer(found.container.logical, .keep, from: home, to: home)
    planned.scanned = number
    planned.paths = ContainerFates(keeping: found).paths
    return planned
  }

  /// A container that goes to the trash as a whole.
  func removing(_ number: Int) -> PlannedContainer {
    let found = scan.containers[number]
    var planned = PlannedContainer(
      found.container.logical, .remove, from: found.container.home, to: nil)
    planned.scanned = number
    planned.paths = ContainerFates(found, all: .dropped).paths
    return planned
  }

  /// Says why containers cannot be moved that lie behind a link, on a volume of their own, or that
  /// nobody could look into.
  func refuseImmovable(_ plan: inout AppChangePlan) {
    for planned in plan.containers where planned.fate != .keep && planned.fate != .copy {
      guard let number = planned.scanned else { continue }
      let container = scan.containers[number].container
      let named =
        container.path.isAbsolute ? container.path : device.root.appending(container.path)
      let status = scan.containers[number].entries.first?.status
      let reason: String? =
        if !container.isReadable || status == nil {
          "it cannot be looked at"
        } else if named != container.absolutePath {
          "it is reached through a link, and lies at '\(container.absolutePath)'"
        } else if status?.isMountPoint == true {
          "another volume is mounted there"
        } else if container.logical.instance != nil {
          "another container claims to be the same"
        } else {
          nil
        }
      guard let reason else { continue }
      plan.refusals.append(Refusal(.place, "'\(planned.path)' cannot be moved: \(reason)"))
    }
  }
}

extension Container {
  /// Its directory; of a bundle that shares a directory with others its own.
  var home: ByteString { member.map { absolutePath.appending($0) } ?? absolutePath }
}

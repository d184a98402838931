internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// Offload and uninstall: what goes is what the policy's `containers` says, and a group only when nobody
/// else is known, stated or looks to share it.
extension AppChangePlanner {
  func planRemoval(_ plan: inout AppChangePlan) {
    refuseAbsent(&plan)
    for number in scan.containers.indices {
      plan.containers.append(remaining(number, &plan) ? keeping(number) : removing(number))
    }
    refuseOutside(&plan)
    refuseImmovable(&plan)
    if plan.isSimulated { plan.commands = PlatformCommands.commands(for: request, on: device) }
  }

  private func refuseAbsent(_ plan: inout AppChangePlan) {
    let isInstalled = present?.isInstalled ?? false
    if request.change == .offload, !isInstalled, !plan.isSimulated {
      let hasData = present != nil
      plan.refusals.append(
        Refusal(
          .notInstalled,
          hasData
            ? "the app is not installed: only its data is there"
            : "the device has no app '\(request.app)'",
          hint: hasData
            ? "'sandboxctl reinstall' puts its bundle back"
            : "'sandboxctl apps' lists the apps"))
    }
    if request.change == .uninstall, present == nil {
      plan.refusals.append(
        Refusal(
          .notInstalled, "the device has nothing of '\(request.app)'",
          hint: "'sandboxctl apps' lists the apps"))
    }
  }

  /// Whether a container stays; of a group that could go it is said why.
  private func remaining(_ number: Int, _ plan: inout AppChangePlan) -> Bool {
    let container = scan.containers[number].container
    let terms = terms(container.kind)
    if request.change == .offload { return terms.offload ?? .keep == .keep }
    switch terms.uninstall ?? .keep {
    case .keep: return true
    case .remove: return container.owner != request.app
    case .removeWithLastKnownMember:
      guard let reason = reasonToKeep(container) else { return false }
      plan.notes.append(PathRemark(path: container.logicalPrefix, remark: "it stays: \(reason)"))
      return true
    }
  }

  /// Why a group outlives the app; nil when the app is the last that is known to share it.
  ///
  /// An app that is offloaded has no bundle to say what it shares. It may be any group, and so all that
  /// are known to be shared by nobody else stay while there is one.
  private func reasonToKeep(_ group: Container) -> String? {
    let own = present?.groups.first { $0.group == group.identifier }
    guard let own, own.isKnown else { return "that the app shares it is not known" }
    let others = device.members(of: group).map(\.app.identifier).filter { $0 != request.app }
    if let other = others.first {
      let more = others.count > 1 ? " and \(others.count - 1) more" : ""
      return "'\(other)'\(more) may share it"
    }
    let unknown = device.apps.first {
      !$0.isInstalled && $0.identifier != request.app && $0.groups.allSatisfy { !$0.isKnown }
    }
    return unknown.map { "'\($0.identifier)' is not installed, and may share it" }
  }

  /// Refuses what would reach beyond the device that was named, as a program in the system's directory.
  private func refuseOutside(_ plan: inout AppChangePlan) {
    for planned in plan.containers where planned.fate == .remove {
      guard let number = planned.scanned, !plan.isSimulated else { continue }
      let container = scan.containers[number].container
      guard container.path.isAbsolute else { continue }
      plan.refusals.append(
        Refusal(
          .place, "'\(planned.path)' lies outside the device, at '\(container.absolutePath)'",
          hint: "remove it there yourself; its data is in the device"))
    }
  }
}

extension AppChangePlan {
  /// Whether anything gives way to something else, or goes.
  var takesAway: Bool { containers.contains { [.remove, .replace, .move].contains($0.fate) } }
}

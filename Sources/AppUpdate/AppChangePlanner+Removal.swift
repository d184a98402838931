internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

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
            ? "the app is not installed; only its data is present"
            : "the device has no app '\(request.app)'",
          hint: hasData
            ? "use 'sandboxctl reinstall' to restore its bundle"
            : "'sandboxctl apps' lists the apps"))
    }
    if request.change == .uninstall, present == nil {
      plan.refusals.append(
        Refusal(
          .notInstalled, "the device has no app or data of '\(request.app)'",
          hint: "'sandboxctl apps' lists the apps"))
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
  /// there is one, every group is kept that no other app is known to share.
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
      plan.refusals.append(
        Refusal(
          .place, "'\(planned.path)' is outside the device, at '\(container.absolutePath)'",
          hint: "remove it there yourself; its data is on the device"))
    }
  }
}

extension AppChangePlan {
  /// Whether anything is replaced, moved or removed.
  var takesAway: Bool { containers.contains { [.remove, .replace, .move].contains($0.action) } }
}

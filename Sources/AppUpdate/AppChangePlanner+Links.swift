internal import DeviceScan
internal import Restore
internal import SandboxModel
internal import SystemIO

/// Links in containers that move to another directory. An absolute link that names such a container
/// by UUID or location is rewritten to the new location; others are reported and do not change.
extension AppChangePlanner {
  func anchorLinks(_ plan: inout AppChangePlan) {
    let anchors = LinkAnchors(
      plan.containers.compactMap { planned in
        guard let from = planned.from, let to = planned.to else { return nil }
        let uuid = planned.scanned.flatMap { scan.containers[$0].container.uuid }
        return LinkAnchors.Anchor(uuid: uuid, from: from, to: to)
      })
    for place in plan.containers.indices {
      let planned = plan.containers[place]
      guard planned.action == .move, planned.from != planned.to, let number = planned.scanned else {
        continue
      }
      anchorLinks(of: scan.containers[number], anchors, &plan.containers[place])
    }
  }

  private func anchorLinks(
    of found: ContainerScan, _ anchors: LinkAnchors, _ planned: inout PlannedContainer
  ) {
    let dropped = planned.drops.map(\.inner)
    guard let root = try? Directory.open(resolved: found.container.absolutePath) else { return }
    var ladder = DirectoryCursor(root: root)
    for (index, entry) in found.entries.enumerated() where entry.status.kind == .symlink {
      let inner = found.path(index)
      if dropped.contains(where: { inner.isWithin($0) }) { continue }
      let before = try? ladder.withDirectory(at: inner.components.dropLast()) {
        directory throws(SystemError) in try directory.target(of: inner.lastComponent ?? "")
      }
      guard let before else { continue }
      let path = found.logicalPath(index)
      switch anchors.target(of: before) {
      case .unchanged: break
      case .own(let after):
        planned.links.append(
          PlannedLink(
            path: path, before: before, after: after, inner: inner, status: entry.status))
      case .foreign:
        planned.foreignLinks.append(PathRemark(path: path, remark: "it points to '\(before)'"))
      }
    }
    planned.links.sort { $0.path < $1.path }
    planned.foreignLinks.sort { $0.path < $1.path }
  }
}

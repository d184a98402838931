internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// Marks on user data and on directories of the system, and cache tags in user data.
///
/// In a group's container no guide prescribes directories, so only marks on the directories of the
/// system are findings there.
enum MarkCheck: AuditCheck {
  static func run(_ context: AuditContext, into findings: inout FindingCollector) {
    for scan in context.scan.containers {
      // A mark below a reported one adds no information.
      var reported: Set<Int> = []
      for (index, marks) in scan.marks.sorted(by: { $0.key < $1.key })
      where !isBelow(reported, index, in: scan) {
        for (number, marker) in context.policy.markers.enumerated()
        where marks.contains(MarkSet(marker: number)) {
          guard let found = finding(marker, index, in: scan, context: context) else { continue }
          findings.add(found)
          reported.insert(index)
        }
      }
    }
  }

  private static func isBelow(
    _ reported: Set<Int>, _ index: Int, in scan: ContainerScan
  ) -> Bool {
    var at = index
    while at > 0, !reported.isEmpty {
      at = Int(scan.entries[at].parent)
      if reported.contains(at) { return true }
    }
    return false
  }

  private static func finding(
    _ marker: Marker, _ index: Int, in scan: ContainerScan, context: AuditContext
  ) -> AuditFinding? {
    guard let rule = rule(marker, index, in: scan, of: context.device.layout) else { return nil }
    let sign =
      switch marker.sign {
      case .attribute(let name, _): "the attribute \(name)"
      case .file(let name, _): "the file \(name)"
      }
    return context.finding(
      rule, index, in: scan, totals: scan.totals(below: index), detail: "by \(sign)",
      key: marker.id,
      command: .own(["include", scan.logicalPath(index)]))
  }

  private static func rule(
    _ marker: Marker, _ index: Int, in scan: ContainerScan, of layout: Layout
  ) -> AuditRule? {
    let dataClass = scan.entries[index].verdicts.keep.dataClass
    let isPrecious = [DataClass.userData, .inbox].contains(dataClass)
    let kind = scan.container.kind
    if case .file = marker.sign {
      return isPrecious && kind != .group ? .tagInUserData : nil
    }
    guard marker.settings.backup?.standard == .never else { return nil }
    // A mark on the system's caches excludes nothing that a backup would otherwise contain.
    if SystemDirectories.has(scan.path(index), in: kind, of: layout),
      scan.entries[index].status.kind == .directory, dataClass != .cache, dataClass != .temporary
    {
      return .systemDirectoryMarked
    }
    return isPrecious && kind != .group ? .userDataMarked : nil
  }
}

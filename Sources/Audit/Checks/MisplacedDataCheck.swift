internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// Documents of an app in its caches and temporary files: files and packages of the types that its
/// Info.plist says it edits or owns.
enum MisplacedDataCheck: AuditCheck {
  static func run(_ context: AuditContext, into findings: inout FindingCollector) {
    if !context.isApple { return }
    for scan in context.scan.containers {
      guard scan.container.kind == .data || scan.container.kind == .extension,
        let names = scan.container.owner.flatMap({ context.documents[$0] }),
        !names.extensions.isEmpty
      else { continue }
      find(names, in: scan, context, into: &findings)
    }
  }

  private static func find(
    _ names: DocumentNames, in scan: ContainerScan, _ context: AuditContext,
    into findings: inout FindingCollector
  ) {
    let groups = EntryGroups(scan, includesBelow: true) { index in
      let dataClass = scan.entries[index].verdicts.keep.dataClass
      guard dataClass == .cache || dataClass == .temporary else { return false }
      let kind = scan.entries[index].status.kind
      return (kind == .file || kind == .directory) && names.has(scan.name(index))
    }.groups
    let documents = scan.container.absolutePath.appending("Documents/.")
    for group in groups where group.totals.files > 0 {
      findings.add(
        context.finding(
          .userDataInCache, group.index, in: scan, totals: group.totals,
          detail: "its type is one of the app's documents",
          command: .other(
            program: "mv -n --",
            [scan.container.absolutePath.appending(scan.path(group.index)), documents])))
    }
  }
}

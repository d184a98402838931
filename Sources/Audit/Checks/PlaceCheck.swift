internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// Files outside all promised directories, and data on which the platform and this program differ.
enum PlaceCheck: AuditCheck {
  /// Directories that daemons of the platform create in an app's container.
  private static let ofDaemons: Set<ByteString> = ["CloudKit", "StoreKit", "SystemData"]

  static func run(_ context: AuditContext, into findings: inout FindingCollector) {
    for scan in context.scan.containers where scan.container.kind != .bundle {
      findUnpromised(scan, context, into: &findings)
      findDifferences(scan, context, into: &findings)
    }
  }

  /// Whether an entry is data of an app that no guide mentions.
  private static func isUnpromised(
    _ index: Int, in scan: ContainerScan, context: AuditContext
  ) -> Bool {
    let kind = scan.container.kind
    guard context.isApple, kind == .data || kind == .extension else { return false }
    return scan.entries[index].verdicts.keep.dataClass == .unknown
  }

  private static func findUnpromised(
    _ scan: ContainerScan, _ context: AuditContext, into findings: inout FindingCollector
  ) {
    // Without the root, so that each directory in it is a separate group.
    let groups = EntryGroups(scan) { $0 > 0 && isUnpromised($0, in: scan, context: context) }.groups
    let promised = scan.container.absolutePath.appending("Library/Application Support/.")
    for group in groups where group.totals.files > 0 {
      let path = scan.path(group.index)
      if ofDaemons.contains(path) { continue }
      findings.add(
        context.finding(
          .unpromisedDirectory, group.index, in: scan, totals: group.totals,
          detail: "no guide names it",
          command: .other(
            program: "mv -n --", [scan.container.absolutePath.appending(path), promised])))
    }
  }

  private static func findDifferences(
    _ scan: ContainerScan, _ context: AuditContext, into findings: inout FindingCollector
  ) {
    for isOwn in [true, false] {
      let groups = EntryGroups(scan) { index in
        index > 0 && !isUnpromised(index, in: scan, context: context)
          && difference(scan.entries[index]) == isOwn
      }.groups
      for group in groups where group.totals.files > 0 {
        findings.add(
          context.finding(
            .platformDifference, group.index, in: scan, totals: group.totals,
            detail: isOwn
              ? "sandboxctl backs it up and the platform does not"
              : "the platform backs it up and sandboxctl does not",
            key: isOwn ? "own" : "platform",
            command: .own(["explain", scan.logicalPath(group.index)])))
      }
    }
  }

  /// Returns true if only this program backs up an entry, false if only the platform does, nil if
  /// they agree. Metadata differs by design.
  private static func difference(_ entry: ScannedEntry) -> Bool? {
    if entry.verdicts.keep.dataClass == .metadata { return nil }
    let keep = entry.verdicts.keep.backup.mode() != .never
    let platform = entry.verdicts.platform.backup.mode() != .never
    return keep == platform ? nil : keep
  }
}

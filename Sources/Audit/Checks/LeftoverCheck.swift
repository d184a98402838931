internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// Files that stay in Documents/Inbox and tmp.
///
/// The change time of an entry counts: the modification time of a delivered file is the sender's. A
/// copy of a device therefore has no leftovers until the copied entries are old, too.
enum LeftoverCheck: AuditCheck {
  static let inboxAge = 7
  static let temporaryAge = 3

  static func run(_ context: AuditContext, into findings: inout FindingCollector) {
    if !context.isApple { return }
    for scan in context.scan.containers
    where scan.container.kind == .data || scan.container.kind == .extension {
      findInbox(scan, context, into: &findings)
      let names = scan.container.owner.flatMap { context.documents[$0] } ?? DocumentNames()
      findTemporary(scan, context, besides: names, into: &findings)
    }
  }

  private static func findInbox(
    _ scan: ContainerScan, _ context: AuditContext, into findings: inout FindingCollector
  ) {
    guard let inbox = scan.index(of: "Documents/Inbox") else { return }
    let kind = scan.entries[inbox].status.kind
    guard kind == .directory else {
      findings.add(
        context.finding(
          .inboxLeftover, inbox, in: scan, totals: EntryTotals(),
          detail: "it is not a directory, so the system cannot deliver files",
          key: "not a directory",
          command: .other(
            program: "mv -n --", [real("Documents/Inbox", scan), real("Documents/Inbox.old", scan)])
        ))
      return
    }
    for index in scan.entries[inbox].children {
      guard let age = age(of: index, in: scan, now: context.now), age >= inboxAge else { continue }
      findings.add(
        context.finding(
          .inboxLeftover, index, in: scan, totals: scan.totals(below: index),
          detail: "unchanged for \(age) days", command: claim(index, in: scan, context)))
    }
  }

  /// Returns the command that moves an entry of an inbox to Documents: `interapp inbox claim` if
  /// the device has inboxes and the entry can be claimed.
  private static func claim(
    _ index: Int, in scan: ContainerScan, _ context: AuditContext
  ) -> AuditContext.Command {
    let (name, kind) = (scan.name(index), scan.entries[index].status.kind)
    // The options of the device follow the words, so none can be ended by `--`.
    if context.device.layout == .coreSimulator, scan.container.kind == .data,
      kind == .file || kind == .directory, !name.bytes.starts(with: "-".utf8),
      let app = scan.container.owner
    {
      return .own(["interapp", "inbox", "claim", name, "--app", app.bytes])
    }
    return .other(
      program: "mv -n --", [real(scan.path(index), scan), real("Documents/.", scan)])
  }

  /// Finds old files in tmp. Entries that are, contain or may be documents of the app are not
  /// reported, because the command deletes.
  private static func findTemporary(
    _ scan: ContainerScan, _ context: AuditContext, besides names: DocumentNames,
    into findings: inout FindingCollector
  ) {
    guard let top = scan.index(of: "tmp") else { return }
    for index in scan.entries[top].children {
      let totals = scan.totals(below: index)
      guard totals.files > 0, let age = age(of: index, in: scan, now: context.now),
        age >= temporaryAge, !hasDocuments(index, in: scan, names)
      else { continue }
      findings.add(
        context.finding(
          .temporaryLeftover, index, in: scan, totals: totals, detail: "unchanged for \(age) days",
          command: .other(program: "rm -r --", [real(scan.path(index), scan)])))
    }
  }

  /// Whether an entry, or one below it, is precious or has a name that a document may have.
  private static func hasDocuments(
    _ top: Int, in scan: ContainerScan, _ names: DocumentNames
  ) -> Bool {
    var pending = [top]
    while let index = pending.popLast() {
      let entry = scan.entries[index]
      let dataClass = entry.verdicts.keep.dataClass
      if dataClass.isPrecious || names.mayHave(scan.name(index)) { return true }
      if entry.status.kind == .directory { pending += entry.children }
    }
    return false
  }

  private static func real(_ path: ByteString, _ scan: ContainerScan) -> ByteString {
    scan.container.absolutePath.appending(path)
  }

  /// Returns the number of days since the newest change of an entry and everything below it, or nil
  /// if a change is in the future.
  private static func age(
    of top: Int, in scan: ContainerScan, now: Timestamp
  ) -> Int? {
    var (newest, pending) = (scan.entries[top].status.changed, [top])
    while let index = pending.popLast() {
      newest = max(newest, scan.entries[index].status.changed)
      if scan.entries[index].status.kind == .directory { pending += scan.entries[index].children }
    }
    let seconds = now.since(newest)
    return seconds < 0 ? nil : Int(seconds / 86_400)
  }
}

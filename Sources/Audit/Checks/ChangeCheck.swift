internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// Files that change in almost every snapshot, and large flat files that change daily.
enum ChangeCheck: AuditCheck {
  /// The minimum number of compared pairs of snapshots.
  static let minimumIntervals = 3
  /// The minimum number of rewritten bytes of a file in these snapshots for a finding: small files
  /// may change at any rate.
  static let minimumRewritten: UInt64 = 1 << 20
  /// The size in bytes from which a flat file should be a database.
  static let largeFile: UInt64 = 20_000_000
  /// The number of different days with a change from which a file counts as changing daily.
  static let daily = 3

  static func run(_ context: AuditContext, into findings: inout FindingCollector) {
    guard let history = context.history, history.intervals >= minimumIntervals else { return }
    let lookup = LogicalPathLookup(context.scan.containers)
    for (path, changes) in history.files.sorted(by: { $0.key < $1.key }) {
      guard changes.count >= minimumIntervals, let (scan, index) = lookup.entry(at: path),
        scan.container.kind != .bundle
      else { continue }
      let entry = scan.entries[index]
      guard entry.status.kind == .file, entry.selection == .included else { continue }
      if let found = finding(index, in: scan, changes, of: history, context: context) {
        findings.add(found)
      }
    }
  }

  /// Returns a finding about a file that changes too often for its size, or nil.
  private static func finding(
    _ index: Int, in scan: ContainerScan, _ changes: ChangeHistory.Changes,
    of history: ChangeHistory, context: AuditContext
  ) -> AuditFinding? {
    let size = scan.entries[index].status.size
    // Snapshots from before the file was created do not count.
    let intervals = changes.intervals ?? history.intervals
    let detail = "changed \(changes.count) times in the last \(intervals + 1) daily snapshots"
    let path = scan.logicalPath(index)
    if size > largeFile, changes.days >= daily, !isDatabase(index, scan) {
      return context.finding(
        .flatFile, index, in: scan, detail: "\(detail), on \(changes.days) days",
        command: .query(["versions", path]))
    }
    // Three quarters of the snapshots.
    guard changes.count * 4 >= intervals * 3,
      size >= minimumRewritten / UInt64(changes.count)
    else { return nil }
    // Only data that can be recreated should be excluded: an app's database of class support can be
    // the only copy of notes. For other data, the command shows the versions.
    let canBeMade = [DataClass.downloaded, .cache, .temporary].contains(
      scan.entries[index].verdicts.keep.dataClass)
    return context.finding(
      .churn, index, in: scan, detail: detail,
      command: canBeMade ? .own(["exclude", path]) : .query(["versions", path]))
  }

  /// Whether a file is a SQLite database or a part of one.
  static func isDatabase(_ index: Int, _ scan: ContainerScan) -> Bool {
    if scan.entries[index].type == .database { return true }
    if Container.database(ofFile: scan.name(index)) != nil { return true }
    guard var reader = try? ContainerReader(scan.container) else { return false }
    let magic = Array("SQLite format 3\0".utf8)
    return (try? reader.head(scan.path(index), count: magic.count)) == magic
  }
}

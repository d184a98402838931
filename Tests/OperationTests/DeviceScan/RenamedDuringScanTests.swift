import ArchiveStore
import Glibc
import PolicyEngine
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Backup
@testable import DeviceScan

/// Entries renamed or replaced while the scan runs are in the snapshot, with and without the state
/// of an earlier run.
struct RenamedDuringScanTests {
  let fixture: Fixture

  init() throws {
    fixture = try Fixture()
    try fixture.writeProject()
  }

  /// The ways to divide the scan: one thread, and a job for each directory.
  static let variants = [
    ScanVariant(share: 2048, workers: 1), ScanVariant(share: 1, workers: 1),
    ScanVariant(share: 1, workers: 2),
  ]

  /// Scans the tree; calls `change` once, after the root was listed and before any directory below
  /// it is entered.
  private func scan(
    _ variant: ScanVariant = .usual, _ patterns: [CommandLinePattern] = [],
    changing change: @escaping @Sendable (borrowing Directory) throws -> Void
  ) throws -> DeviceScan {
    let calls = Mutex(0)
    let path = fixture.directory.path("tree")
    var options = variant.applied(to: ScanOptions())
    options.isStopping = {
      let isFirst = calls.withLock { count in
        count += 1
        return count == 1
      }
      if isFirst {
        do { try change(try Directory.open(path: path)) } catch { Issue.record(error) }
      }
      return false
    }
    return try fixture.scan(patterns, options: options)
  }

  private func backup(_ scan: DeviceScan) throws -> BackupReport {
    try BackupOperation(
      BackupPlan.make(scan), to: fixture.repository, fixture.request(keeping: "cache")
    ).run()
  }

  @Test(arguments: variants, [true, false])
  func aDirectoryRenamedBeforeItIsEnteredIsStored(variant: ScanVariant, hasState: Bool) throws {
    if hasState { _ = try fixture.backup(keeping: "cache") }
    let report = try backup(
      scan(variant) { try $0.rename("project", to: "project-2026", in: $0) })
    #expect(report.isComplete && report.warnings.isEmpty, "\(report.unreadable)")
    _ = try fixture.restore(report)
    #expect(try fixture.names("back").sorted() == ["archive", "project-2026"])
    #expect(try fixture.names("back/project-2026").count == 20)
  }

  @Test(arguments: variants, [true, false])
  func aDirectoryReplacedBeforeItIsEnteredIsStored(variant: ScanVariant, hasState: Bool) throws {
    if hasState { _ = try fixture.backup(keeping: "cache") }
    let report = try backup(
      scan(variant) {
        try $0.rename("project", to: "project.old", in: $0)
        _ = try $0.makeDirectory("project")
      })
    #expect(report.isComplete && report.warnings.isEmpty, "\(report.unreadable)")
    _ = try fixture.restore(report)
    #expect(try fixture.names("back/project").isEmpty)
    #expect(try fixture.names("back/project.old").count == 20)
  }

  /// When the entries are read, the directory is back in its place, but the scan has not listed it.
  @Test(arguments: variants, [true, false])
  func aDirectoryThatIsAwayDuringTheScanIsStored(variant: ScanVariant, hasState: Bool) throws {
    if hasState { _ = try fixture.backup(keeping: "cache") }
    let scan = try scan(variant) { try $0.rename("project", to: "away", in: $0) }
    let top = try fixture.tree()
    try top.rename("away", to: "project", in: top)
    let report = try backup(scan)
    #expect(report.isComplete && report.warnings.isEmpty, "\(report.unreadable)")
    _ = try fixture.restore(report)
    #expect(try fixture.names("back").sorted() == ["archive", "project"])
    #expect(try fixture.names("back/project").count == 20)
  }

  @Test(arguments: variants) func aDirectoryDeletedDuringTheScanIsAWarning(
    variant: ScanVariant
  ) throws {
    _ = try fixture.backup(keeping: "cache")
    let report = try backup(scan(variant) { try $0.removeTree("project") })
    #expect(report.isComplete)
    #expect(report.warnings.map(\.path) == ["folders/tree/project"])
    _ = try fixture.restore(report)
    #expect(try fixture.names("back") == ["archive"])
  }

  /// The policy excludes the directory itself, but not all entries in it.
  @Test(arguments: variants) func aRenamedDirectoryThatIsOnlyAParentIsStored(
    variant: ScanVariant
  ) throws {
    let patterns = [CommandLinePattern.exclude("cache*"), .include("cache*/kept")]
    try fixture.directory.write("kept", at: "tree/cache/kept")
    let report = try backup(
      scan(variant, patterns) { try $0.rename("cache", to: "cache-2", in: $0) })
    #expect(report.isComplete, "\(report.unreadable)")
    _ = try fixture.restore(report)
    #expect(try fixture.text("back/cache-2/kept") == "kept")
  }

  /// The status of each entry in turn is missing, as if the entry were renamed between the listing
  /// of its name and its examination.
  @Test func anEntryRenamedBeforeItIsExaminedIsStored() throws {
    for call in 1...200 {
      let plan = Faults.Plan(failing: [.status], at: call, number: ENOENT)
      let scan = Faults.inject(plan) {
        try? fixture.scan(options: ScanVariant.usual.applied(to: ScanOptions()))
      }
      guard plan.hasFired else {
        #expect(call > 23)
        return
      }
      // The first calls examine the container itself, without which there is no backup.
      guard let scan, let report = try? backup(scan) else {
        #expect(call < 5)
        continue
      }
      #expect(report.isComplete, "\(report.unreadable)")
      let back = ByteString("back \(call)")
      _ = try fixture.restore(report, to: back)
      #expect(try fixture.names(back) == ["archive", "project"], "call \(call)")
      #expect(try fixture.names(back.appending("project")).count == 20, "call \(call)")
      #expect(try fixture.names(back.appending("archive")) == ["other"], "call \(call)")
    }
    Issue.record("the scan has more calls than expected")
  }

  /// A file is written under a temporary name and renamed to its target: the scan lists the
  /// temporary name and finds the file under the other one.
  @Test func aFileFoundUnderItsNewNameNeedsNoSecondScan() throws {
    try fixture.directory.write("note", at: "tree/note")
    var scan = try fixture.scan(options: ScanVariant.usual.applied(to: ScanOptions()))
    let index = try #require(scan.containers[0].index(of: "note"))
    let identity = scan.containers[0].entries[index].status.identity
    scan.containers[0].vanished = [VanishedEntry(path: "note.tmp", identity: identity)]
    var plan = BackupPlan.make(scan)
    plan.rescan = { [scan] _ in
      Issue.record("the source was scanned again")
      return scan
    }
    let report = try BackupOperation(
      plan, to: fixture.repository, fixture.request(keeping: "cache")
    ).run()
    #expect(report.isComplete)
  }
}

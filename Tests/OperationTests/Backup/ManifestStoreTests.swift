import ArchiveStore
import DeviceDiscovery
import DeviceScan
import SandboxModel
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Backup

/// A copy of a LevelDB store has the files that its manifest lists.
@Suite(.spreadScans) struct ManifestStoreTests {
  private let fixture: Fixture

  init() throws {
    fixture = try Fixture()
    try write("000005.ldb", "table 5")
    try write("000006.log", "log 6")
    try write("CURRENT", "MANIFEST-000004\n")
    try write("MANIFEST-000004", "5 6")
  }

  private func write(_ name: String, _ text: String) throws {
    try fixture.directory.write(text, at: ByteString("tree/store/\(name)"))
  }

  /// Scans the tree at a time long after the last file was added to the store.
  private func scan() throws -> DeviceScan {
    try fixture.tree().setModified(Timestamp(seconds: 1_700_000_000, nanoseconds: 5), of: "store")
    return try fixture.scan()
  }

  private func expectWholeStore(_ report: BackupReport) throws {
    #expect(report.isComplete && report.warnings.isEmpty, "\(report.warnings)")
    _ = try fixture.restore(report)
    let names = try fixture.names("tree/store")
    #expect(try fixture.names("back/store") == names)
    for name in names {
      let (then, now) = (ByteString("back/store"), ByteString("tree/store"))
      #expect(try fixture.text(then.appending(name)) == fixture.text(now.appending(name)))
    }
  }

  /// A store that writes its log to a new table and adds the table to the manifest.
  @Test func tablesThatAreNewInTheManifestAreStored() throws {
    let scan = try scan()
    try write("000007.ldb", "table 7")
    try write("MANIFEST-000004", "5 7 8")
    try write("000008.log", "log 8")
    try expectWholeStore(fixture.backup(scan))
  }

  /// A store that a program opens, which replaces the manifest.
  @Test func aReplacedManifestIsStoredWithItsFiles() throws {
    let scan = try scan()
    try write("000007.ldb", "table 7")
    try write("000009.log", "log 9")
    try write("MANIFEST-000008", "5 7 9")
    try write("CURRENT", "MANIFEST-000008\n")
    let store = try fixture.tree().directory("store")
    for name in ["000006.log", "MANIFEST-000004"] as [ByteString] { try store.remove(name) }
    try expectWholeStore(fixture.backup(scan))
  }

  /// A store that gets a new manifest in the first round of reading.
  @Test func aStoreThatRestsIsReadAgain() throws {
    let store = try RestlessStore(fixture)
    var request = fixture.request(keeping: "cache")
    request.now = { store.now() }
    let plan = try BackupPlan.make(scan())
    try expectWholeStore(BackupOperation(plan, to: fixture.repository, request).run())
  }

  /// A store that also changes in the last round causes a warning, unless it was moved as a whole.
  @Test func aStoreThatDoesNotRestIsReported() {
    var findings = BackupRun.Findings()
    findings.record(moved: ["folders/tree/moved"], stores: ["folders/tree/moved/a", "folders/b"])
    #expect(findings.warnings.map(\.path) == ["folders/b"])
    #expect(findings.warnings.first?.remark.hasPrefix("its files were replaced") == true)
    #expect(findings.unreadable.map(\.path) == ["folders/tree/moved"])
  }

  /// An operation that replaces data does not rely on such a copy.
  @Test func aCopyOfARestlessStoreIsIncomplete() {
    var findings = BackupRun.Findings()
    findings.record(moved: [], stores: ["folders/b"])
    var report = BackupReport()
    report.add(findings)
    #expect(!report.isComplete && report.seriousWarnings == ["folders/b"])
    #expect(report.firstGap?.remark.hasPrefix("its files were replaced") == true)
  }

  /// Neither does it rely on a copy of a Realm or LMDB database that changed each time it was read.
  @Test(arguments: [false, true]) func aChangingFileIsIncompleteIfItIsADatabase(isMapped: Bool) {
    var findings = BackupRun.Findings()
    findings.recordChanging("folders/b", isMapped: isMapped)
    var report = BackupReport()
    report.add(findings)
    #expect(report.warnings.count == 1)
    #expect(report.isComplete == !isMapped && report.seriousWarnings.isEmpty == !isMapped)
  }

  /// Scans three apps: one with a store, one with a database, and another.
  private func scanApps() throws -> DeviceScan {
    for app in ["a", "b", "c"] {
      try fixture.directory.write("text", at: ByteString("home/.config/\(app)/file"))
    }
    let head = Array("SQLite format 3".utf8) + [0]
    try fixture.directory.write(
      head + [UInt8](repeating: 1, count: 512 - head.count), at: "home/.config/b/database")
    try fixture.directory.write("MANIFEST-000004\n", at: "home/.config/a/store/CURRENT")
    try fixture.directory.write("5", at: "home/.config/a/store/MANIFEST-000004")
    try Directory.open(path: fixture.directory.path("home/.config/a")).setModified(
      Timestamp(seconds: 1_700_000_000, nanoseconds: 5), of: "store")
    let device = try Device.find(root: fixture.directory.path("home"), layout: .xdg)
    return DeviceScan.run(device, policy: try Fixture.policy(.xdg), options: ScanOptions())
  }

  /// The requests for further scans.
  private final class Requests: Sendable {
    let paths = Mutex<[Set<ByteString>]>([])
  }

  /// A log that the scan did not find is also stored in the next round.
  @Test(arguments: [false, true])
  func otherContainersAreNotScannedAgainUnlessTheyGotALog(hasNewLog: Bool) throws {
    let scan = try scanApps()
    let paths = scan.containers.map(\.container.logicalPrefix)
    #expect(paths == ["apps/a/config", "apps/b/config", "apps/c/config"])
    try fixture.directory.write("table", at: "home/.config/a/store/000005.ldb")
    if hasNewLog { try fixture.directory.write("log", at: "home/.config/b/database-wal") }
    let requests = Requests()
    var plan = BackupPlan.make(scan)
    plan.rescan = { [rescan = scan.rescan] paths in
      requests.paths.withLock { $0.append(paths) }
      return rescan(paths)
    }
    let report = try BackupOperation(
      plan, to: fixture.repository, fixture.request(keeping: "cache")
    ).run()
    #expect(report.isComplete && report.warnings.isEmpty, "\(report.warnings)")
    #expect(requests.paths.withLock { $0 } == [Set(paths.prefix(hasNewLog ? 2 : 1))])
    let stored: [[ByteString]] = [
      ["file", "store"], hasNewLog ? ["database", "database-wal", "file"] : ["database", "file"],
      ["file"],
    ]
    for (number, path) in paths.enumerated() {
      let back = ByteString("back \(number)")
      _ = try fixture.restore(report, path, to: back)
      #expect(try fixture.names(back) == stored[number])
    }
    #expect(try fixture.names("back 0/store") == ["000005.ldb", "CURRENT", "MANIFEST-000004"])
  }

  /// Other directories that contain a file of that name are read once.
  @Test func aManifestOfAnotherKindIsAnOrdinaryFile() throws {
    try fixture.directory.write("text", at: "tree/other/MANIFEST-1")
    let scan = try fixture.scan()
    try fixture.directory.write("text", at: "tree/other/new")
    let report = try fixture.backup(scan)
    #expect(report.isComplete && report.warnings.isEmpty)
    _ = try fixture.restore(report)
    #expect(try fixture.names("back/other") == ["MANIFEST-1"])
  }

  /// A store whose manifest is replaced once.
  private final class RestlessStore: Sendable {
    private let tree: ByteString
    private let spare: ByteString
    private let isAtRest = Mutex(false)

    init(_ fixture: Fixture) throws {
      (tree, spare) = (fixture.directory.path("tree"), fixture.directory.path("spare"))
      try fixture.directory.write("5 6 7", at: "spare/next")
    }

    /// The current time, which the run requests after the scan of a round, and before it reads a
    /// file.
    func now() -> Timestamp {
      isAtRest.withLock { isAtRest in
        guard !isAtRest, let spare = try? Directory.open(path: spare),
          let store = try? Directory.open(path: tree.appending("store"))
        else { return }
        isAtRest = true
        try? spare.rename("next", to: "MANIFEST-000004", in: store)
      }
      return Timestamp(seconds: Host.now().seconds + 3600)
    }
  }
}

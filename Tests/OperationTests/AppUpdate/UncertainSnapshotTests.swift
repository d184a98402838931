import AppUpdate
import ArchiveStore
import Backup
import DeviceScan
import DeviceTransaction
import Restore
import SystemIO
import TestSupport
import Testing

/// A database that cannot be read consistently blocks the snapshot before an operation, and with it
/// the operation: the user could not return to the state before.
@Suite(.spreadScans) struct UncertainSnapshotTests {
  private let fixture: UpdateFixture
  private static let package = MemoryPackage(files: ["new": "new"])

  init() throws {
    fixture = try UpdateFixture()
    try write("page")
  }

  private func write(_ page: String) throws {
    try fixture.write("SQLite format 3\0" + String(repeating: page, count: 4000), Self.path)
  }

  private static let path: ByteString = "Documents/held.db"

  private var saving: SafetySnapshotMaker {
    var request = fixture.request
    request.databaseTimeout = 0.2
    return SafetySnapshotMaker(request, in: fixture.base.repository)
  }

  /// Expects that an operation is refused and changes nothing while the database is locked, and
  /// that it is carried out afterwards. The database is changed first, so that no earlier snapshot
  /// has its current content.
  private func expectRefused(
    sourceLocation: SourceLocation = #_sourceLocation, _ operation: () throws -> Void
  ) throws {
    try write("edit")
    let holder = try DatabaseHolder(
      fixture.dataDirectory().appending(Self.path), writes: false)
    defer { holder.end() }
    let before = try fixture.contents()
    let error = #expect(throws: OperationError.self, sourceLocation: sourceLocation) {
      try operation()
    }
    #expect(error?.code == .safetySnapshotFailed, sourceLocation: sourceLocation)
    let text = error?.description ?? ""
    #expect(
      text.contains("'apps/org.example.one/data/Documents/held.db': the database was in use"),
      "\(text)", sourceLocation: sourceLocation)
    #expect(error?.hint?.contains("--no-snapshot") ?? false, sourceLocation: sourceLocation)
    #expect(try fixture.contents() == before, sourceLocation: sourceLocation)
    #expect(!fixture.hasStaging, sourceLocation: sourceLocation)
    holder.end()
    try operation()
    #expect(try fixture.contents() != before, sourceLocation: sourceLocation)
  }

  private func change(_ change: AppChange) throws {
    let plan = try fixture.plan(change, change == .update ? Self.package : nil)
    var source = Self.package
    _ = try AppChangeOperation(plan, saving: saving).run(&source)
  }

  @Test func uninstallIsRefused() throws { try expectRefused { try change(.uninstall) } }

  @Test func updateIsRefused() throws { try expectRefused { try change(.update) } }

  @Test func rollbackIsRefused() throws {
    try fixture.run(.update, Self.package)
    try expectRefused {
      let plan = try fixture.rollbackPlan { $0.data = .before }
      _ = try AppChangeOperation(
        plan, saving: saving, from: fixture.base.repository.beginReading()
      ).run()
    }
  }

  @Test func restoreIsRefused() throws {
    let scan = DeviceScan.run(try fixture.device(), policy: try PurgeFixture.policy())
    let report = try BackupOperation(
      BackupPlan.make(scan), to: fixture.base.repository, fixture.request
    ).run()
    let stored = try #require(report.snapshot)
    try fixture.write("rewritten", "Documents/thesis.txt")
    try expectRefused {
      var request = DeviceRestoreRequest(
        try fixture.device(), isInPlace: true, policy: try PurgeFixture.policy())
      request.path = "apps/org.example.one/data"
      request.isForced = true
      let reader = try fixture.base.repository.beginReading()
      let plan = try DeviceRestorePlan.make(stored, request, from: reader)
      _ = try DeviceRestoreOperation(plan, from: reader, saving: saving).run()
    }
  }
}

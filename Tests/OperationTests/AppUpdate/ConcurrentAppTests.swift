import ArchiveStore
import DeviceScan
import Restore
import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import AppUpdate

/// A process of the app that runs while the app is changed: its open file is detected, and data
/// written between the plan and the exchange is not lost.
@Suite(.spreadScans) struct ConcurrentAppTests {
  private static let package = MemoryPackage(
    extensions: [("\(UpdateFixture.app).share", "20")], files: ["Example": "new program"])

  /// Returns the plan of a change, in a fixture in which the change is possible.
  private func plan(
    _ change: AppChange, _ fixture: UpdateFixture, isForced: Bool
  ) throws -> AppChangePlan {
    if change == .rollback { return try fixture.rollbackPlan { $0.isForced = isForced } }
    let needsPackage = [.install, .update, .reinstall].contains(change)
    return try fixture.plan(change, needsPackage ? Self.package : nil) { $0.isForced = isForced }
  }

  private func makeFixture(for change: AppChange) throws -> UpdateFixture {
    let fixture = try UpdateFixture()
    switch change {
    case .install, .reinstall: try fixture.run(.offload, Self.package)
    case .rollback: try fixture.run(.update, Self.package)
    case .update, .offload, .uninstall: break
    }
    return fixture
  }

  private func carryOut(_ plan: AppChangePlan, _ fixture: UpdateFixture) throws -> AppChangeReport {
    plan.request.change == .rollback
      ? try fixture.carryOut(plan, from: fixture.base.repository.beginReading())
      : try fixture.carryOut(plan, Self.package)
  }

  /// A file that an app has open blocks the change, with the process and the file in the error,
  /// unless it is forced.
  @Test(arguments: AppChange.allCases) func anOpenFileBlocksTheChange(_ change: AppChange) throws {
    let fixture = try makeFixture(for: change)
    let file = try fixture.dataDirectory().appending("Documents/thesis.txt")
    let sleeper = try Program.start("sleep", ["600"], standardInput: file)
    defer { sleeper.end() }
    let before = try fixture.contents()
    let plan = try plan(change, fixture, isForced: false)
    #expect(plan.refusals.isEmpty)
    let sign = try #require(plan.runningProcesses().first)
    #expect(sign.program.description.contains("sleep"))
    #expect(sign.file.description.hasSuffix("Documents/thesis.txt"))
    let error = #expect(throws: OperationError.self) { try carryOut(plan, fixture) }
    #expect(error?.description.contains("'org.example.one': ") ?? false)
    #expect(error?.description.contains("sleep") ?? false, "\(error as Any)")
    #expect(error?.description.contains("\(sign.process)") ?? false, "\(error as Any)")
    #expect(error?.hint?.contains("--force") ?? false)
    #expect(try fixture.contents() == before && !fixture.hasStaging)
    #expect(try carryOut(self.plan(change, fixture, isForced: true), fixture).isComplete)
    #expect(try fixture.contents() != before)
  }

  /// A file written after the plan of a rollback stays in its place or is moved to the trash, and
  /// replaced files are reported.
  @Test func filesWrittenMeanwhileSurviveARollback() throws {
    let fixture = try makeFixture(for: .rollback)
    try fixture.write("rewritten", "Documents/thesis.txt")
    let plan = try fixture.rollbackPlan { $0.data = .before }
    try fixture.write("rewritten again", "Documents/thesis.txt")
    try fixture.write("late", "Documents/late")
    try fixture.write("late directory", "Fresh/late")
    let report = try carryOut(plan, fixture)
    let found = try fixture.contents()
    #expect(found["apps/org.example.one/data/Documents/thesis.txt"]?.text == "a thesis")
    #expect(found["apps/org.example.one/data/Documents/late"]?.text == "late")
    #expect(found["apps/org.example.one/data/Fresh/late"]?.text == "late directory")
    #expect(try fixture.trash().values.contains("rewritten again"))
    #expect(
      report.lateChanges.map(\.path) == ["apps/org.example.one/data/Documents/thesis.txt"],
      "replaced unplanned files are reported")
    #expect(!report.isComplete)
  }

  /// The same for an uninstallation: all files are in the trash, and are reported.
  @Test func filesWrittenMeanwhileSurviveAnUninstallation() throws {
    let fixture = try makeFixture(for: .uninstall)
    let plan = try fixture.plan(.uninstall, nil)
    try fixture.write("rewritten", "Documents/thesis.txt")
    try fixture.write("late directory", "Fresh/late")
    let report = try carryOut(plan, fixture)
    #expect(!report.isComplete)
    let reported = Set(report.lateChanges.map(\.path))
    for path: ByteString in ["Documents/thesis.txt", "Fresh", "Fresh/late"] {
      #expect(reported.contains(ByteString("apps/org.example.one/data").appending(path)), "\(path)")
    }
    let trash = try fixture.trash()
    #expect(trash["apps/org.example.one/data/Documents/thesis.txt"] == "rewritten")
    #expect(trash["apps/org.example.one/data/Fresh/late"] == "late directory")
  }

  /// If an error prevents the comparison of a file or directory with the plan, it is reported as
  /// possibly changed.
  @Test func entriesThatCannotBeComparedAreReported() throws {
    let fixture = try UpdateFixture()
    let data: ByteString = "apps/org.example.one/data"
    let scan = try #require(
      try fixture.scan().containers.first { $0.container.logicalPrefix == data })
    let home = try Host.realPath(fixture.dataDirectory())
    for inner: ByteString in ["Documents", "Documents/thesis.txt"] {
      let entry = try #require(scan.entries.indices.first { scan.path($0) == inner })
      let path = home.appending(inner)
      let searches = [
        { LateChanges.find(scan, below: entry, at: path) },
        { LateChanges.find(scan, replaced: [(inner: inner, path: path)]) },
      ]
      for search in searches {
        #expect(search().isEmpty)
        let found = Faults.inject(Faults.Plan(failing: [.open], at: 1, number: 5), search)
        #expect(found.map(\.path) == [data.appending(inner)])
        #expect(found.allSatisfy { $0.remark.hasPrefix("it cannot be compared") }, "\(found)")
      }
    }
  }
}

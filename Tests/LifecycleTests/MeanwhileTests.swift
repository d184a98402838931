import ArchiveStore
import Lifecycle
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// What a process of the app does while something becomes of it: one that has a file open is found, and
/// nothing that is written between plan and exchange is lost.
@Suite(.spreadScans) struct MeanwhileTests {
  private static let package = MemoryPackage(
    extensions: [("\(UpdateFixture.app).share", "20")], files: ["Example": "new program"])

  /// A rig in which a change is possible, and the plan of it.
  private func plan(
    _ change: AppChange, _ rig: UpdateFixture, isForced: Bool
  ) throws -> AppChangePlan {
    if change == .rollback { return try rig.rollbackPlan { $0.isForced = isForced } }
    let needsPackage = [.install, .update, .reinstall].contains(change)
    return try rig.plan(change, needsPackage ? Self.package : nil) { $0.isForced = isForced }
  }

  private func rig(for change: AppChange) throws -> UpdateFixture {
    let rig = try UpdateFixture()
    switch change {
    case .install, .reinstall: try rig.run(.offload, Self.package)
    case .rollback: try rig.run(.update, Self.package)
    case .update, .offload, .uninstall: break
    }
    return rig
  }

  private func carryOut(_ plan: AppChangePlan, _ rig: UpdateFixture) throws -> AppChangeReport {
    plan.request.change == .rollback
      ? try rig.carryOut(plan, from: rig.rig.repository.beginReading())
      : try rig.carryOut(plan, Self.package)
  }

  /// A file that an app has open forbids it, with the process and the file named; unless it is forced.
  @Test(arguments: AppChange.allCases) func anOpenFileForbidsIt(_ change: AppChange) throws {
    let rig = try rig(for: change)
    let file = try rig.dataDirectory().appending("Documents/thesis.txt")
    let sleeper = try Program.start("sleep", ["600"], standardInput: file)
    defer { sleeper.end() }
    let before = try rig.contents()
    let plan = try plan(change, rig, isForced: false)
    #expect(plan.refusals.isEmpty)
    let sign = try #require(plan.runningProcesses().first)
    #expect(sign.program.description.contains("sleep"))
    #expect(sign.file.description.hasSuffix("Documents/thesis.txt"))
    let error = #expect(throws: LifecycleError.self) { try carryOut(plan, rig) }
    #expect(error?.description.contains("'org.example.one': ") ?? false)
    #expect(error?.description.contains("sleep") ?? false, "\(error as Any)")
    #expect(error?.description.contains("\(sign.process)") ?? false, "\(error as Any)")
    #expect(error?.hint?.contains("--force") ?? false)
    #expect(try rig.contents() == before && !rig.hasStaging)
    #expect(try carryOut(self.plan(change, rig, isForced: true), rig).isComplete)
    #expect(try rig.contents() != before)
  }

  /// What is written after the plan of a rollback is where it was, or in the trash, and what gave way is
  /// told.
  @Test func whatComesMeanwhileOutlivesARollback() throws {
    let rig = try rig(for: .rollback)
    try rig.write("rewritten", "Documents/thesis.txt")
    let plan = try rig.rollbackPlan { $0.data = .before }
    try rig.write("rewritten again", "Documents/thesis.txt")
    try rig.write("late", "Documents/late")
    try rig.write("late directory", "Fresh/late")
    let report = try carryOut(plan, rig)
    let found = try rig.contents()
    #expect(found["apps/org.example.one/data/Documents/thesis.txt"]?.text == "a thesis")
    #expect(found["apps/org.example.one/data/Documents/late"]?.text == "late")
    #expect(found["apps/org.example.one/data/Fresh/late"]?.text == "late directory")
    #expect(try rig.trash().values.contains("rewritten again"))
    #expect(
      report.unplanned.map(\.path) == ["apps/org.example.one/data/Documents/thesis.txt"],
      "what gave way unseen is told")
    #expect(!report.isComplete)
  }

  /// The same of an uninstallation: all of it lies in the trash, and is told.
  @Test func whatComesMeanwhileOutlivesAnUninstallation() throws {
    let rig = try rig(for: .uninstall)
    let plan = try rig.plan(.uninstall, nil)
    try rig.write("rewritten", "Documents/thesis.txt")
    try rig.write("late directory", "Fresh/late")
    let report = try carryOut(plan, rig)
    #expect(!report.isComplete)
    let told = Set(report.unplanned.map(\.path))
    for path: ByteString in ["Documents/thesis.txt", "Fresh", "Fresh/late"] {
      #expect(told.contains(ByteString("apps/org.example.one/data").appending(path)), "\(path)")
    }
    let trash = try rig.trash()
    #expect(trash["apps/org.example.one/data/Documents/thesis.txt"] == "rewritten")
    #expect(trash["apps/org.example.one/data/Fresh/late"] == "late directory")
  }
}

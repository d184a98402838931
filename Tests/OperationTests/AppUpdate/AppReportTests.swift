import AppUpdate
import ArchiveStore
import Backup
import Codecs
import DeviceScan
import DeviceTransaction
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// The paths and byte counts of plans and reports match the actual changes, for all six operations,
/// on generated devices with names that are not valid UTF-8.
@Suite(.spreadScans) struct AppReportTests {
  /// Each file of the app's containers by its logical path, including the platform's metadata, with
  /// its content and its size.
  private struct Files {
    private(set) var all: [ByteString: (content: Digest?, size: UInt64)] = [:]

    init(_ fixture: UpdateFixture) throws {
      for container in try fixture.device().containers {
        let inner = ByteString(
          container.absolutePath.bytes.dropFirst(fixture.base.directory.path.count + 1))
        for (path, record) in try fixture.base.records(inner) where record.kind == .file {
          all[container.logicalPrefix.appending(path)] = (record.content, record.size)
        }
      }
    }
  }

  private static let rounds = Sampling.count(2, of: 40)

  private static let package = MemoryPackage(files: ["Example": "new program"])

  @Test(arguments: [AppChange.update, .uninstall])
  func anInterruptedPlanNamesTheOperation(_ change: AppChange) throws {
    let fixture = try UpdateFixture()
    let policy = try PurgeFixture.policy()
    let preparation = try AppChangePreparation(
      isForced: true, savesFirst: false, isPreview: true, find: fixture.device,
      compile: { _ in policy }, notify: { _, _ in })
    let request = AppChangeRequest(
      change, of: UpdateFixture.identifier,
      package: change == .update ? Self.package.app : nil)
    let error = #expect(throws: OperationError.self) {
      try preparation.plan(request, savingTo: nil, at: .unrestricted) { true }
    }
    #expect(error?.code == .interrupted)
    #expect(
      error?.description
        == "the \(change.rawValue) of 'org.example.one' was interrupted: nothing was changed")
  }

  @Test func plansAndReportsMatchTheChanges() throws {
    var random = Seeded.fresh("AppReportTests")
    for _ in 0..<Self.rounds {
      let fixture = try UpdateFixture()
      try fixture.fill(&random)
      for location in ["Documents", "tmp", "Library/Caches"] {
        let name = ByteString(Array("\(location)/odd".utf8) + [0xff, 0x0a] + Array("name".utf8))
        try fixture.base.directory.write(
          Array("odd".utf8), at: fixture.data.appending(UpdateFixture.old).appending(name))
      }
      let isStrict = Bool.random(using: &random)
      try expectReported(
        fixture, by: fixture.plan(.update, Self.package) { $0.isStrict = isStrict })
      try fixture.write("rewritten", "Documents/thesis.txt")
      try fixture.write("new chapter", "Documents/chapter")
      try Directory.open(path: fixture.dataDirectory().appending("Documents/deep/er")).remove(
        "note")
      let choice = AppChangeRequest.DataChoice.allCases.randomElement(using: &random)
      try expectReported(fixture, by: fixture.rollbackPlan { $0.data = choice })
      try expectReported(fixture, by: fixture.plan(.offload, nil))
      try expectReported(fixture, by: fixture.plan(.reinstall, Self.package))
      try expectReported(fixture, by: fixture.plan(.uninstall, nil))
      let harbor: ByteString = "phone/.sandboxctl/safe-harbor/apps/org.example.one"
      try fixture.put("waited", harbor.appending("data/Documents/thesis"))
      try expectReported(fixture, by: fixture.plan(.install, Self.package))
    }
  }

  /// Carries out a plan and compares the device before and after with its paths and byte counts.
  private func expectReported(_ fixture: UpdateFixture, by plan: AppChangePlan) throws {
    let before = try Files(fixture).all
    var source = Self.package
    let reader = try fixture.base.repository.beginReading()
    let operation = AppChangeOperation(
      plan, saving: SafetySnapshotMaker(fixture.request, in: fixture.base.repository),
      from: plan.request.change == .rollback ? reader : nil)
    let report =
      plan.request.package == nil ? try operation.run() : try operation.run(&source)
    let what = "\(plan.request.change), \(plan.request.data.map { "\($0)" } ?? "")"
    #expect(report.isComplete, "\(what): \(report.failed) \(report.lateChanges)")
    let after = try Files(fixture).all
    let paths = Dictionary(
      uniqueKeysWithValues: plan.containers.flatMap(\.paths).map { ($0.path, $0.outcome) })
    var sums: [DataOutcome: EntryTotals] = [:]
    for (path, file) in before {
      let outcome = try #require(reported(of: path, paths), "\(what): '\(path)' is not in the plan")
      sums[outcome, default: EntryTotals()].files += 1
      sums[outcome, default: EntryTotals()].bytes += file.size
      switch outcome {
      case .carried, .atRisk: #expect(after[path]?.content == file.content, "\(what): '\(path)'")
      case .dropped: #expect(after[path] == nil, "\(what): '\(path)'")
      case .replaced:
        #expect(path.components.contains("bundle") || after[path] != nil, "\(what): '\(path)'")
      case .restored: Issue.record("\(what): '\(path)' existed before")
      }
    }
    for path in after.keys where before[path] == nil {
      let container = try #require(plan.containers.first { path.isWithin($0.path) })
      if container.trashRestores.contains(where: {
        path.isWithin(container.path.appending($0.inner))
      }) {
        continue
      }
      if [.make, .adopt, .replace].contains(container.action) { continue }
      #expect(
        reported(of: path, paths) == .restored,
        "\(what): '\(path)' was created and is not in the plan")
      sums[.restored, default: EntryTotals()].files += 1
      sums[.restored, default: EntryTotals()].bytes += after[path]?.size ?? 0
    }
    for outcome in DataOutcome.allCases {
      let reported = plan.totals(outcome).reduce(into: EntryTotals()) { $0.add($1.totals) }
      #expect(reported == sums[outcome] ?? EntryTotals(), "\(what): \(outcome)")
    }
  }

  /// The planned outcome for a path: that of the planned path itself or of its nearest ancestor.
  private func reported(
    of path: ByteString, _ paths: [ByteString: DataOutcome]
  ) -> DataOutcome? {
    for count in stride(from: path.components.count, through: 1, by: -1) {
      let above = path.components.prefix(count).map(\.bytes)
      let joined = ByteString(above.joined(separator: [UInt8(ascii: "/")]))
      if let outcome = paths[joined] { return outcome }
    }
    return nil
  }
}

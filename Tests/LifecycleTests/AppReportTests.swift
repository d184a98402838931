import ArchiveStore
import Foundation
import Lifecycle
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// What plans and reports say of paths and bytes is what happens, for all six operations, over made-up
/// devices with names that are no text.
@Suite(.spreadScans) struct AppReportTests {
  /// Each file of the app's containers by its logical path, the platform's metadata included, with its
  /// content and its size.
  private struct Files {
    private(set) var all: [ByteString: (content: Int?, size: UInt64)] = [:]

    init(_ rig: UpdateFixture) throws {
      for container in try rig.device().containers {
        let inner = ByteString(
          container.absolutePath.bytes.dropFirst(rig.rig.directory.path.count + 1))
        for (path, record) in try rig.rig.records(inner) where record.kind == .file {
          all[container.logicalPrefix.appending(path)] = (record.content, record.size)
        }
      }
    }
  }

  private static var rounds: Int {
    ProcessInfo.processInfo.environment["SANDBOXCTL_STRESS"] != nil ? 40 : 2
  }

  private static let package = MemoryPackage(files: ["Example": "new program"])

  @Test func whatIsToldIsWhatHappens() throws {
    var random = Seeded.fresh("AppReportTests")
    for _ in 0..<Self.rounds {
      let rig = try UpdateFixture()
      try rig.fill(&random)
      for place in ["Documents", "tmp", "Library/Caches"] {
        let name = ByteString(Array("\(place)/odd".utf8) + [0xff, 0x0a] + Array("name".utf8))
        try rig.rig.directory.write(
          Array("odd".utf8), at: rig.data.appending(UpdateFixture.old).appending(name))
      }
      let isStrict = Bool.random(using: &random)
      try expectTold(rig, by: rig.plan(.update, Self.package) { $0.isStrict = isStrict })
      try rig.write("rewritten", "Documents/thesis.txt")
      try rig.write("new chapter", "Documents/chapter")
      try Directory.open(path: rig.dataDirectory().appending("Documents/deep/er")).remove("note")
      let choice = DataChoice.allCases.randomElement(using: &random)
      try expectTold(rig, by: rig.rollbackPlan { $0.data = choice })
      try expectTold(rig, by: rig.plan(.offload, nil))
      try expectTold(rig, by: rig.plan(.reinstall, Self.package))
      try expectTold(rig, by: rig.plan(.uninstall, nil))
      let harbor: ByteString = "phone/.sandboxctl/safe-harbor/apps/org.example.one"
      try rig.put("waited", harbor.appending("data/Documents/thesis"))
      try expectTold(rig, by: rig.plan(.install, Self.package))
    }
  }

  /// Carries out a plan and holds the device before and after against it.
  private func expectTold(_ rig: UpdateFixture, by plan: AppChangePlan) throws {
    let before = try Files(rig).all
    var source = Self.package
    let reader = try rig.rig.repository.beginReading()
    let operation = AppChangeOperation(
      plan, saving: rig.request, to: rig.rig.repository,
      from: plan.request.change == .rollback ? reader : nil)
    let report =
      plan.request.package == nil ? try operation.run() : try operation.run(&source)
    let what = "\(plan.request.change), \(plan.request.data.map { "\($0)" } ?? "")"
    #expect(report.isComplete, "\(what): \(report.failed) \(report.unplanned)")
    let after = try Files(rig).all
    let paths = Dictionary(
      uniqueKeysWithValues: plan.containers.flatMap(\.paths).map { ($0.path, $0.fate) })
    var sums: [PlannedPath.Fate: EntryTotals] = [:]
    for (path, file) in before {
      let fate = try #require(told(of: path, paths), "\(what): '\(path)' is not told of")
      sums[fate, default: EntryTotals()].files += 1
      sums[fate, default: EntryTotals()].bytes += file.size
      switch fate {
      case .carried, .atRisk: #expect(after[path]?.content == file.content, "\(what): '\(path)'")
      case .dropped: #expect(after[path] == nil, "\(what): '\(path)'")
      case .replaced:
        #expect(path.components.contains("bundle") || after[path] != nil, "\(what): '\(path)'")
      case .restored: Issue.record("\(what): '\(path)' was there")
      }
    }
    for path in after.keys where before[path] == nil {
      let container = try #require(plan.containers.first { path.isWithin($0.path) })
      if container.returns.contains(where: { path.isWithin(container.path.appending($0.inner)) }) {
        continue
      }
      if [.make, .adopt, .replace].contains(container.fate) { continue }
      #expect(told(of: path, paths) == .restored, "\(what): '\(path)' came and is not told of")
      sums[.restored, default: EntryTotals()].files += 1
      sums[.restored, default: EntryTotals()].bytes += after[path]?.size ?? 0
    }
    for fate in PlannedPath.Fate.allCases {
      let told = plan.totals(fate).reduce(into: EntryTotals()) { $0.add($1.totals) }
      #expect(told == sums[fate] ?? EntryTotals(), "\(what): \(fate)")
    }
  }

  /// What is told of a path: by the innermost that is named at or above it.
  private func told(
    of path: ByteString, _ paths: [ByteString: PlannedPath.Fate]
  ) -> PlannedPath.Fate? {
    for count in stride(from: path.components.count, through: 1, by: -1) {
      let above = path.components.prefix(count).map(\.bytes)
      let joined = ByteString(above.joined(separator: [UInt8(ascii: "/")]))
      if let fate = paths[joined] { return fate }
    }
    return nil
  }
}

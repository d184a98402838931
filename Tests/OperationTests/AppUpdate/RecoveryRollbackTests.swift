import AppUpdate
import ArchiveStore
import DeviceTransaction
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// An operation on an app that cannot be finished is rolled back as a whole: the user never has
/// parts of two versions.
@Suite(.spreadScans) struct RecoveryRollbackTests {
  private static let package = MemoryPackage(files: ["Example": "new program"])

  private func plan(_ fixture: UpdateFixture) throws -> AppChangePlan {
    try fixture.plan(.update, Self.package) { ($0.isStrict, $0.savesFirst) = (true, false) }
  }

  /// A single rename fails, each in turn: at once the update is complete or everything is
  /// unchanged.
  @Test func aFailedRenameLeavesNothingHalfDone() throws {
    let fixture = try UpdateFixture()
    try fixture.base.copy("phone", to: "older")
    let before = try fixture.contents()
    var (call, refused, kept) = (0, 0, false)
    while call < 100 {
      call += 1
      try fixture.base.directory.directory.removeTree("phone")
      try fixture.base.copy("older", to: "phone")
      let plan = try plan(fixture)
      let faults = Faults.Plan(failing: [.rename], at: call, number: 13)
      var error: OperationError?
      Faults.inject(faults) {
        do { try fixture.carryOut(plan, Self.package) } catch let failure {
          error = failure as? OperationError
          if error == nil { Issue.record("\(failure)") }
        }
      }
      #expect(try InterruptedOperation.all(on: fixture.root).isEmpty, "call \(call)")
      if let error {
        refused += 1
        #expect(try fixture.contents() == before, "call \(call): \(error)")
        #expect(!fixture.hasStaging, "call \(call)")
        let trash = "phone/.sandboxctl/trash"
        for id in (try? fixture.base.names(ByteString(trash))) ?? [] {
          let names = try fixture.base.names(ByteString(trash).appending(id))
          kept = kept || names.contains("taken-back")
        }
      } else {
        let app = try fixture.device().apps.first { $0.identifier == UpdateFixture.identifier }
        #expect(app?.version == "2.0", "call \(call)")
      }
      if !faults.hasFired { break }
    }
    #expect(call < 100 && refused > 8, "\(call), \(refused)")
    #expect(kept, "files created by then are in the trash")
  }

  /// The update is interrupted at each rename, and then a conflicting file appears in the target:
  /// the update is rolled back, which is reported, and the conflicting file stays. The same update
  /// can then be repeated.
  @Test func anUpdateThatCannotBeFinishedIsRolledBack() throws {
    let fixture = try UpdateFixture()
    try fixture.base.copy("phone", to: "older")
    let before = try fixture.contents()
    var (call, rolledBack, finished) = (0, 0, 0)
    while call < 100 {
      call += 1
      try fixture.base.directory.directory.removeTree("phone")
      try fixture.base.copy("older", to: "phone")
      let plan = try plan(fixture)
      let faults = Faults.Plan(failing: [.rename], at: call, number: 5, failsRepeatedly: true)
      Faults.inject(faults) { _ = try? fixture.carryOut(plan, Self.package) }
      if !faults.hasFired { break }
      guard let left = try InterruptedOperation.all(on: fixture.root).first, left.canBeFinished
      else {
        continue
      }
      var conflicts: [ByteString] = []
      for planned in plan.containers {
        guard let to = planned.to, planned.from != to, (try? Directory.open(path: to)) == nil else {
          continue
        }
        try Directory.make(path: to).create("foreign").close()
        conflicts.append(to)
      }
      let recovery = Recovery(
        try fixture.device(), policy: try PurgeFixture.policy(), isForced: true)
      let done = try #require(try recovery.run().done.first)
      #expect(try recovery.run().done.isEmpty && !fixture.hasStaging, "call \(call)")
      #expect(done.isFinished == conflicts.isEmpty && done.failed.isEmpty, "call \(call)")
      #expect((done.reason == nil) == done.isFinished, "call \(call)")
      for location in conflicts {
        let directory = try Directory.open(path: location)
        #expect(try directory.names() == ["foreign"], "call \(call)")
        try Directory.open(path: location.parent).removeTree(location.lastComponent ?? "")
      }
      if done.isFinished {
        finished += 1
      } else {
        rolledBack += 1
        #expect(try fixture.contents() == before, "call \(call)")
        #expect(try fixture.carryOut(self.plan(fixture), Self.package).isComplete, "call \(call)")
      }
    }
    #expect(call < 100 && rolledBack > 1 && finished > 1, "\(call), \(rolledBack), \(finished)")
  }

  /// Files written into a new directory before it had to be removed are in the trash.
  @Test func filesWrittenMeanwhileAreKept() throws {
    let fixture = try UpdateFixture()
    try fixture.base.copy("phone", to: "older")
    var (call, last) = (0, nil as AppChangePlan?)
    while call < 100 {
      call += 1
      try fixture.base.directory.directory.removeTree("phone")
      try fixture.base.copy("older", to: "phone")
      let plan = try plan(fixture)
      last = plan
      let faults = Faults.Plan(failing: [.rename], at: call, number: 5, failsRepeatedly: true)
      Faults.inject(faults) { _ = try? fixture.carryOut(plan, Self.package) }
      let bundle = try #require(plan.containers.first { $0.logical.kind == .bundle }?.to)
      if let directory = try? Directory.open(path: bundle) {
        try directory.create("written").write(Array("since".utf8))
        break
      }
    }
    let left = try #require(try InterruptedOperation.all(on: fixture.root).first)
    #expect(left.canBeFinished)
    let to = try #require(last?.containers.first { $0.action == .move }?.to)
    try Directory.make(path: to).create("foreign").close()
    let done = try Recovery(fixture.device(), policy: PurgeFixture.policy(), isForced: true).run()
      .done
    #expect(done.map(\.isFinished) == [false])
    #expect(try fixture.trash().values.contains("since"))
  }
}

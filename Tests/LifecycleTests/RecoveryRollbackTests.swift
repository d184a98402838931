import ArchiveStore
import Lifecycle
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// An operation on an app that cannot be finished is taken back as a whole: the user is never left between
/// two versions.
@Suite(.spreadScans) struct RecoveryRollbackTests {
  private static let package = MemoryPackage(files: ["Example": "new program"])

  private func plan(_ rig: UpdateFixture) throws -> AppChangePlan {
    try rig.plan(.update, Self.package) { ($0.isStrict, $0.savesFirst) = (true, false) }
  }

  /// A rename that is refused once, whichever it is: the update is done, or all is as it was, at once.
  @Test func aRefusedRenameLeavesNothingHalfDone() throws {
    let rig = try UpdateFixture()
    try rig.rig.copy("phone", to: "older")
    let before = try rig.contents()
    var (call, refused, kept) = (0, 0, false)
    while call < 100 {
      call += 1
      try rig.rig.directory.directory.removeTree("phone")
      try rig.rig.copy("older", to: "phone")
      let plan = try plan(rig)
      let faults = Faults.Plan(failing: [.rename], at: call, number: 13)
      var error: LifecycleError?
      Faults.inject(faults) {
        do { try rig.carryOut(plan, Self.package) } catch let failure {
          error = failure as? LifecycleError
          if error == nil { Issue.record("\(failure)") }
        }
      }
      #expect(try InterruptedOperation.all(on: rig.root).isEmpty, "call \(call)")
      if let error {
        refused += 1
        #expect(try rig.contents() == before, "call \(call): \(error)")
        #expect(!rig.hasStaging, "call \(call)")
        let trash = "phone/.sandboxctl/trash"
        for id in (try? rig.rig.names(ByteString(trash))) ?? [] {
          let names = try rig.rig.names(ByteString(trash).appending(id))
          kept = kept || names.contains("taken-back")
        }
      } else {
        let app = try rig.device().apps.first { $0.identifier == UpdateFixture.identifier }
        #expect(app?.version == "2.0", "call \(call)")
      }
      if !faults.hasFired { break }
    }
    #expect(call < 100 && refused > 8, "\(call), \(refused)")
    #expect(kept, "what had come by then is in the trash")
  }

  /// Interrupted at each rename, and then something stands in the place of what is to come: it is taken
  /// back, which is said, and what stands there stays. The same update can be done then.
  @Test func whatCannotBeFinishedIsTakenBack() throws {
    let rig = try UpdateFixture()
    try rig.rig.copy("phone", to: "older")
    let before = try rig.contents()
    var (call, rolledBack, finished) = (0, 0, 0)
    while call < 100 {
      call += 1
      try rig.rig.directory.directory.removeTree("phone")
      try rig.rig.copy("older", to: "phone")
      let plan = try plan(rig)
      let faults = Faults.Plan(failing: [.rename], at: call, number: 5, staysBroken: true)
      Faults.inject(faults) { _ = try? rig.carryOut(plan, Self.package) }
      if !faults.hasFired { break }
      guard let left = try InterruptedOperation.all(on: rig.root).first, left.canBeFinished else {
        continue
      }
      var obstacles: [ByteString] = []
      for planned in plan.containers {
        guard let to = planned.to, planned.from != to, (try? Directory.open(path: to)) == nil else {
          continue
        }
        try Directory.make(path: to).create("foreign").close()
        obstacles.append(to)
      }
      let recovery = Recovery(try rig.device(), policy: try PurgeFixture.policy(), isForced: true)
      let done = try #require(try recovery.run().done.first)
      #expect(try recovery.run().done.isEmpty && !rig.hasStaging, "call \(call)")
      #expect(done.isFinished == obstacles.isEmpty && done.failed.isEmpty, "call \(call)")
      #expect((done.reason == nil) == done.isFinished, "call \(call)")
      for place in obstacles {
        let directory = try Directory.open(path: place)
        #expect(try directory.names() == ["foreign"], "call \(call)")
        try Directory.open(path: place.above(in: "/")).removeTree(place.lastComponent ?? "")
      }
      if done.isFinished {
        finished += 1
      } else {
        rolledBack += 1
        #expect(try rig.contents() == before, "call \(call)")
        #expect(try rig.carryOut(self.plan(rig), Self.package).isComplete, "call \(call)")
      }
    }
    #expect(call < 100 && rolledBack > 1 && finished > 1, "\(call), \(rolledBack), \(finished)")
  }

  /// What was written into something new before it had to go again is in the trash.
  @Test func whatWasWrittenMeanwhileIsKept() throws {
    let rig = try UpdateFixture()
    try rig.rig.copy("phone", to: "older")
    var (call, last) = (0, nil as AppChangePlan?)
    while call < 100 {
      call += 1
      try rig.rig.directory.directory.removeTree("phone")
      try rig.rig.copy("older", to: "phone")
      let plan = try plan(rig)
      last = plan
      let faults = Faults.Plan(failing: [.rename], at: call, number: 5, staysBroken: true)
      Faults.inject(faults) { _ = try? rig.carryOut(plan, Self.package) }
      let bundle = try #require(plan.containers.first { $0.logical.kind == .bundle }?.to)
      if let directory = try? Directory.open(path: bundle) {
        try directory.create("written").write(Array("since".utf8))
        break
      }
    }
    let left = try #require(try InterruptedOperation.all(on: rig.root).first)
    #expect(left.canBeFinished)
    let to = try #require(last?.containers.first { $0.fate == .move }?.to)
    try Directory.make(path: to).create("foreign").close()
    let done = try Recovery(rig.device(), policy: PurgeFixture.policy(), isForced: true).run().done
    #expect(done.map(\.isFinished) == [false])
    #expect(try rig.trash().values.contains("since"))
  }
}

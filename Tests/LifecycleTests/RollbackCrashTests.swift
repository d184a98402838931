import Foundation
import Lifecycle
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// The machine goes while an update is taken back, at each call of that: what comes next takes back the
/// rest. The device is as before, what an app wrote meanwhile is somewhere, and nothing else is left.
@Suite(.spreadScans) struct RollbackCrashTests {
  /// Where the update cannot go on, as something stands there.
  enum Conflict: CaseIterable, Sendable {
    case bundle, data
  }

  private static let package = MemoryPackage(files: ["Example": "new program"])

  /// Each call where time is no matter; else each thirteenth, from another one on at each run.
  private static let stride = Sampling.stride(13)

  private struct Device {
    let rig: UpdateFixture
    let before: [ByteString: UpdateFixture.Content]
    let obstacle: Conflict

    init(_ obstacle: Conflict) throws {
      rig = try UpdateFixture()
      self.obstacle = obstacle
      try rig.rig.copy("phone", to: "older")
      before = try rig.contents()
    }

    func renew() throws -> AppChangePlan {
      try rig.rig.directory.directory.removeTree("phone")
      try rig.rig.copy("older", to: "phone")
      return try rig.plan(.update, RollbackCrashTests.package) {
        ($0.isStrict, $0.savesFirst) = (true, false)
      }
    }

    func place(of obstacle: Conflict, in plan: AppChangePlan) throws -> ByteString {
      try #require(
        plan.containers.first {
          obstacle == .bundle ? $0.logical.kind == .bundle : $0.path == "apps/org.example.one/data"
        }?.to)
    }

    func obstruct(_ plan: AppChangePlan) throws {
      try Directory.make(path: place(of: obstacle, in: plan)).create("foreign").close()
    }

    func update(_ plan: AppChangePlan) {
      #expect(throws: LifecycleError.self) {
        try rig.carryOut(plan, RollbackCrashTests.package)
      }
    }

    func recovery() throws -> Recovery {
      try Recovery(rig.device(), policy: PurgeFixture.policy(), isForced: true)
    }

    /// An app writes into what has come by now.
    func write(_ plan: AppChangePlan) throws -> Bool {
      for other in Conflict.allCases where other != obstacle {
        let to = try place(of: other, in: plan)
        guard let directory = try? Directory.open(path: to) else { continue }
        try directory.openOrCreate("written").write(Array("since".utf8))
        return true
      }
      return false
    }

    /// Holds that all is as it was, once what was interrupted has been taken back.
    func expectAsBefore(_ plan: AppChangePlan, written: Bool, _ what: String) throws {
      #expect(try InterruptedOperation.all(on: rig.root).isEmpty, "\(what)")
      let journal = (try? rig.rig.names("phone/.sandboxctl/journal")) ?? []
      #expect(!journal.contains { $0.description.hasSuffix(".json") }, "\(what)")
      let staged = try rig.rig.records("phone").keys.filter { path in
        !path.isWithin(".sandboxctl/trash")
          && path.components.contains { $0.description.hasPrefix(".sandboxctl-restore-") }
      }
      #expect(staged.isEmpty, "\(what): \(staged)")
      let foreign = try place(of: obstacle, in: plan)
      #expect(try Directory.open(path: foreign).names() == ["foreign"], "\(what)")
      try Directory.open(path: foreign.above(in: "/")).removeTree(foreign.lastComponent ?? "")
      var contents = try rig.contents()
      let trash = try rig.trash()
      if written {
        // The data's container is the very one of before; a bundle that came is in the trash.
        let own = contents.removeValue(forKey: "apps/org.example.one/data/written")
        #expect(own?.text == "since" || trash.values.contains("since"), "\(what)")
      }
      #expect(contents == before, "\(what)")
      for path in trash.keys where path != "operation.json" {
        #expect(path.components.first == "taken-back", "\(what): \(path)")
      }
    }
  }

  @Test(arguments: Conflict.allCases) func theOperationItself(_ obstacle: Conflict) throws {
    let device = try Device(obstacle)
    let whole = Faults.Plan(at: .max, number: 5)
    var plan = try device.renew()
    try device.obstruct(plan)
    Faults.inject(whole) { device.update(plan) }
    try device.expectAsBefore(plan, written: false, "not interrupted")
    var (call, interrupted, written) = (whole.count + 1, 0, 0)
    var random = Seeded.fresh("TakingBackCrashTests")
    call += Int.random(in: 0..<Self.stride, using: &random)
    // From the last call to where it had not begun to be taken back.
    while call > Self.stride {
      call -= Self.stride
      plan = try device.renew()
      try device.obstruct(plan)
      let faults = Faults.Plan(at: call, number: 5, staysBroken: true)
      Faults.inject(faults) { device.update(plan) }
      guard let left = try InterruptedOperation.all(on: device.rig.root).first else {
        try device.expectAsBefore(plan, written: false, "call \(call)")
        continue
      }
      interrupted += 1
      let isWritten = try device.write(plan)
      written += isWritten ? 1 : 0
      let done = try device.recovery().run().done
      #expect(done.map(\.isFinished) == [false], "call \(call)")
      #expect(done.allSatisfy { $0.failed.isEmpty }, "call \(call)")
      try device.expectAsBefore(plan, written: isWritten, "call \(call)")
      if left.canBeFinished, !isWritten { break }
    }
    #expect(call > Self.stride && interrupted > 10, "\(interrupted) of \(whole.count)")
    #expect(obstacle == .bundle || written > 0, "nothing had come")
  }

  @Test(arguments: Conflict.allCases) func theRecovery(_ obstacle: Conflict) throws {
    let device = try Device(obstacle)
    // The last rename at which the update can still be finished.
    var (rename, last) = (0, 0)
    while rename < 100 {
      rename += 1
      let plan = try device.renew()
      let faults = Faults.Plan(failing: [.rename], at: rename, number: 5, staysBroken: true)
      Faults.inject(faults) { _ = try? device.rig.carryOut(plan, Self.package) }
      if !faults.hasFired { break }
      let to = try device.place(of: obstacle, in: plan)
      if try InterruptedOperation.all(on: device.rig.root).first?.canBeFinished == true,
        (try? Directory.open(path: to)) == nil
      {
        last = rename
      }
    }
    var random = Seeded.fresh("TakingBackCrashTests")
    var (call, interrupted, written) = (-Int.random(in: 0..<Self.stride, using: &random), 0, 0)
    while call < 2000 {
      call += Self.stride
      let plan = try device.renew()
      Faults.inject(Faults.Plan(failing: [.rename], at: last, number: 5, staysBroken: true)) {
        device.update(plan)
      }
      try device.obstruct(plan)
      var isWritten = try device.write(plan)
      let recovery = try device.recovery()
      let faults = Faults.Plan(at: call, number: 5, staysBroken: true)
      let error = Faults.inject(faults) { () -> (any Error)? in
        do { return try recovery.run().blocked.first?.error } catch { return error }
      }
      if error != nil {
        interrupted += 1
        isWritten = try device.write(plan) || isWritten
        let done = try recovery.run().done
        #expect(done.allSatisfy { !$0.isFinished && $0.failed.isEmpty }, "call \(call)")
      }
      written += isWritten ? 1 : 0
      try device.expectAsBefore(plan, written: isWritten, "call \(call)")
      if !faults.hasFired { break }
    }
    #expect(call < 2000 && interrupted > 10, "\(call), \(interrupted)")
    #expect(obstacle == .bundle || written > 0, "nothing had come")
  }
}

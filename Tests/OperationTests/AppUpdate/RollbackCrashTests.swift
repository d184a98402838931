import AppUpdate
import DeviceTransaction
import Foundation
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// A crash at each call of the rollback of an update: the next operation finishes the rollback. The
/// device is as before, data that an app wrote in the meantime is kept, and nothing else remains.
@Suite(.spreadScans) struct RollbackCrashTests {
  /// The path at which a conflicting entry stops the update.
  enum Conflict: CaseIterable, Sendable {
    case bundle, data
  }

  private static let package = MemoryPackage(files: ["Example": "new program"])

  /// The distance between the tested calls: 1 in complete runs, otherwise 13, beginning at a
  /// different call in each run.
  private static let stride = Sampling.stride(13)

  private struct Device {
    let fixture: UpdateFixture
    let before: [ByteString: UpdateFixture.Content]
    let conflict: Conflict

    init(_ conflict: Conflict) throws {
      fixture = try UpdateFixture()
      self.conflict = conflict
      try fixture.base.copy("phone", to: "older")
      before = try fixture.contents()
    }

    func renew() throws -> AppChangePlan {
      try fixture.base.directory.directory.removeTree("phone")
      try fixture.base.copy("older", to: "phone")
      return try fixture.plan(.update, RollbackCrashTests.package) {
        ($0.isStrict, $0.savesFirst) = (true, false)
      }
    }

    func path(of conflict: Conflict, in plan: AppChangePlan) throws -> ByteString {
      try #require(
        plan.containers.first {
          conflict == .bundle ? $0.logical.kind == .bundle : $0.path == "apps/org.example.one/data"
        }?.to)
    }

    func obstruct(_ plan: AppChangePlan) throws {
      try Directory.make(path: path(of: conflict, in: plan)).create("foreign").close()
    }

    func update(_ plan: AppChangePlan) {
      #expect(throws: OperationError.self) {
        try fixture.carryOut(plan, RollbackCrashTests.package)
      }
    }

    func recovery() throws -> Recovery {
      try Recovery(fixture.device(), policy: PurgeFixture.policy(), isForced: true)
    }

    /// Writes, as an app, into a directory that the update has put in place.
    func write(_ plan: AppChangePlan) throws -> Bool {
      for other in Conflict.allCases where other != conflict {
        let to = try path(of: other, in: plan)
        guard let directory = try? Directory.open(path: to) else { continue }
        try directory.openOrCreate("written").write(Array("since".utf8))
        return true
      }
      return false
    }

    /// Checks that everything is as before, after the rollback of the interrupted operation.
    func expectAsBefore(_ plan: AppChangePlan, written: Bool, _ what: String) throws {
      #expect(try InterruptedOperation.all(on: fixture.root).isEmpty, "\(what)")
      let journal = (try? fixture.base.names("phone/.sandboxctl/journal")) ?? []
      #expect(!journal.contains { $0.description.hasSuffix(".json") }, "\(what)")
      let staged = try fixture.base.records("phone").keys.filter { path in
        !path.isWithin(".sandboxctl/trash")
          && path.components.contains { $0.description.hasPrefix(".sandboxctl-restore-") }
      }
      #expect(staged.isEmpty, "\(what): \(staged)")
      let foreign = try path(of: conflict, in: plan)
      #expect(try Directory.open(path: foreign).names() == ["foreign"], "\(what)")
      try Directory.open(path: foreign.parent).removeTree(foreign.lastComponent ?? "")
      var contents = try fixture.contents()
      let trash = try fixture.trash()
      if written {
        // The data's container is the same as before; a new bundle is in the trash.
        let own = contents.removeValue(forKey: "apps/org.example.one/data/written")
        #expect(own?.text == "since" || trash.values.contains("since"), "\(what)")
      }
      #expect(contents == before, "\(what)")
      for path in trash.keys where path != "operation.json" {
        #expect(path.components.first == "taken-back", "\(what): \(path)")
      }
    }
  }

  @Test(arguments: Conflict.allCases) func aCrashDuringARollbackLosesNothing(_ conflict: Conflict)
    throws
  {
    let device = try Device(conflict)
    let whole = Faults.Plan(at: .max, number: 5)
    var plan = try device.renew()
    try device.obstruct(plan)
    Faults.inject(whole) { device.update(plan) }
    try device.expectAsBefore(plan, written: false, "not interrupted")
    var (call, interrupted, written) = (whole.count + 1, 0, 0)
    var random = Seeded.fresh("RollbackCrashTests")
    call += Int.random(in: 0..<Self.stride, using: &random)
    // From the last call backwards, to the point at which the rollback had not begun.
    while call > Self.stride {
      call -= Self.stride
      plan = try device.renew()
      try device.obstruct(plan)
      let faults = Faults.Plan(at: call, number: 5, failsRepeatedly: true)
      Faults.inject(faults) { device.update(plan) }
      guard let left = try InterruptedOperation.all(on: device.fixture.root).first else {
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
    #expect(conflict == .bundle || written > 0, "nothing was in place")
  }

  @Test(arguments: Conflict.allCases) func aCrashDuringTheRecoveryLosesNothing(_ conflict: Conflict)
    throws
  {
    let device = try Device(conflict)
    // The last rename at which the update can still be finished.
    var (rename, last) = (0, 0)
    while rename < 100 {
      rename += 1
      let plan = try device.renew()
      let faults = Faults.Plan(failing: [.rename], at: rename, number: 5, failsRepeatedly: true)
      Faults.inject(faults) { _ = try? device.fixture.carryOut(plan, Self.package) }
      if !faults.hasFired { break }
      let to = try device.path(of: conflict, in: plan)
      if try InterruptedOperation.all(on: device.fixture.root).first?.canBeFinished == true,
        (try? Directory.open(path: to)) == nil
      {
        last = rename
      }
    }
    var random = Seeded.fresh("RollbackCrashTests")
    var (call, interrupted, written) = (-Int.random(in: 0..<Self.stride, using: &random), 0, 0)
    while call < 2000 {
      call += Self.stride
      let plan = try device.renew()
      Faults.inject(Faults.Plan(failing: [.rename], at: last, number: 5, failsRepeatedly: true)) {
        device.update(plan)
      }
      try device.obstruct(plan)
      var isWritten = try device.write(plan)
      let recovery = try device.recovery()
      let faults = Faults.Plan(at: call, number: 5, failsRepeatedly: true)
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
    #expect(conflict == .bundle || written > 0, "nothing was in place")
  }
}

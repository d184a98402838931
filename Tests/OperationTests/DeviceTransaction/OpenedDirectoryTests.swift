import AppUpdate
import ArchiveStore
import Codecs
import DeviceTransaction
import Foundation
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// A directory that its owner may not write to is made writable while it is moved. However the
/// operation ends, each directory then has its old mode.
@Suite(.spreadScans) struct OpenedDirectoryTests {
  private static let package = MemoryPackage(files: ["Example": "new program"])
  /// The calls that create or rename entries or change modes: no other call needs to fail to keep
  /// the device unchanged.
  private static let moving: Set<SystemError.Operation> = [.rename, .setMode]

  private struct Device {
    let fixture: UpdateFixture

    init() throws {
      fixture = try UpdateFixture()
      let data = fixture.base.directory.path("phone/Containers/Data")
      let application = data.appending("Application").appending(UpdateFixture.old)
      let plugIns = data.appending("PluginKitPlugin")
      for (path, name) in [
        (application, "tmp"), (application, "StoreKit"), (plugIns, UpdateFixture.plugIn),
        (fixture.base.directory.path("phone/Containers/Bundle/Application"), UpdateFixture.bundle),
      ] as [(ByteString, ByteString)] {
        try Directory.open(path: path).setPermissions(0o555, of: name)
      }
      if Host.userID == 0 {
        _ = try Program.run("chown", ["-R", "nobody", fixture.base.directory.string])
      }
      try fixture.base.copy("phone", to: "older")
    }

    /// The mode of each directory of the device, by its inode.
    func modes() throws -> [UInt64: UInt16] {
      var modes: [UInt64: UInt16] = [:]
      try gather(Directory.open(path: fixture.root), &modes)
      return modes
    }

    private func gather(_ directory: borrowing Directory, _ modes: inout [UInt64: UInt16]) throws {
      let status = try directory.status()
      modes[status.identity.inode] = status.permissions
      for name in try directory.names() where try directory.status(name).kind == .directory {
        try gather(directory.directory(name), &modes)
      }
    }

    func renew() throws -> AppChangePlan {
      try fixture.base.directory.directory.removeTree("phone")
      try fixture.base.copy("older", to: "phone")
      return try fixture.plan(.update, OpenedDirectoryTests.package) {
        ($0.isStrict, $0.savesFirst) = (true, false)
      }
    }

    /// Carries out a plan as a user without privileges. Returns the error, if any.
    func update(_ plan: AppChangePlan, _ faults: Faults.Plan) throws -> (any Error)? {
      try Unprivileged.run(keepingGroup: true) {
        Faults.inject(faults) { () -> (any Error)? in
          do { try fixture.carryOut(plan, OpenedDirectoryTests.package) } catch { return error }
          return nil
        }
      }
    }

    func recover(_ faults: Faults.Plan) throws -> RecoveryReport {
      let recovery = try Recovery(fixture.device(), policy: PurgeFixture.policy(), isForced: true)
      return try Unprivileged.run(keepingGroup: true) {
        try Faults.inject(faults) { try recovery.run() }
      }
    }

    /// The existing records of opened directories.
    func notes() -> [ByteString] {
      ((try? fixture.base.names("phone/.sandboxctl/journal")) ?? [])
        .filter { $0.description.hasSuffix(".opened") }
    }

    func expect(_ before: [UInt64: UInt16], _ what: String) throws {
      let now = try modes()
      for (inode, mode) in before {
        if let found = now[inode] { #expect(found == mode, "\(what): \(inode)") }
      }
      #expect(now.keys.count { before[$0] != nil } > 15, "\(what)")
      #expect(notes().isEmpty, "\(what)")
      #expect(try InterruptedOperation.all(on: fixture.root).isEmpty, "\(what)")
      #expect(!fixture.hasStaging, "\(what)")
    }
  }

  private static let never = Faults.Plan(at: .max, number: 5)

  @Test func aReadOnlyDirectoryKeepsItsMode() throws {
    let device = try Device()
    let plan = try device.renew()
    let before = try device.modes()
    #expect(try device.update(plan, Self.never) == nil)
    try device.expect(before, "done")
    let app = try device.fixture.device().apps.first { $0.identifier == UpdateFixture.identifier }
    #expect(app?.version == "2.0")
    #expect(
      try Set(device.fixture.trash().values).isSuperset(of: ["temporary", "unknown", "draft"]))
  }

  /// From each such call on, all of them fail, as in a crash; then the recovery fails in the same
  /// way, and another recovery succeeds.
  ///
  /// - Parameter isObstructed: whether a conflicting file exists, so that the operation is rolled
  /// back.
  @Test(arguments: [false, true]) func noDirectoryStaysWritable(_ isObstructed: Bool) throws {
    let device = try Device()
    var random = Seeded.fresh("OpenedDirectoryTests")
    var (call, noted, finished, rolledBack) = (0, 0, 0, 0)
    while call < 500 {
      call += 1
      let plan = try device.renew()
      let before = try device.modes()
      if isObstructed {
        let data = plan.containers.first { $0.path == "apps/org.example.one/data" }
        _ = try Directory.make(path: try #require(data?.to))
      }
      let faults = Faults.Plan(failing: Self.moving, at: call, number: 5, failsRepeatedly: true)
      let error = try device.update(plan, faults)
      noted += device.notes().count
      let again = Faults.Plan(
        failing: Self.moving, at: Int.random(in: 1...40, using: &random), number: 5,
        failsRepeatedly: true)
      let interrupted = try device.recover(again)
      noted += device.notes().count
      let report = try device.recover(Self.never)
      #expect(report.blocked.isEmpty, "call \(call)")
      for done in interrupted.done + report.done {
        #expect(done.failed.isEmpty, "call \(call): \(done.failed)")
        finished += done.isFinished ? 1 : 0
        rolledBack += done.isFinished ? 0 : 1
      }
      try device.expect(before, "call \(call): \(error.map { "\($0)" } ?? "done")")
      if !faults.hasFired { break }
    }
    #expect(call < 500, "the loop does not end")
    #expect(noted > 2, "an interruption left a directory open: \(noted)")
    #expect(isObstructed ? rolledBack > 2 : finished > 4, "\(finished), \(rolledBack)")
  }

  /// A mode that cannot be restored at first is restored before the operation ends.
  @Test func restoringAModeIsRetried() throws {
    let device = try Device()
    var (call, refused) = (0, 0)
    while call < 100 {
      call += 1
      let plan = try device.renew()
      let before = try device.modes()
      let faults = Faults.Plan(failing: [.setMode], at: call, number: 5)
      if try device.update(plan, faults) != nil { refused += 1 }
      _ = try device.recover(Self.never)
      try device.expect(before, "call \(call)")
      if !faults.hasFired { break }
    }
    #expect(call < 100 && refused > 4, "\(call), \(refused)")
  }
}

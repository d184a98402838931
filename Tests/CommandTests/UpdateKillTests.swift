import Foundation
import SystemIO
import TestSupport
import Testing

/// An update, an installation and a rollback that are killed at random moments: after `recover` the device
/// is as it was or as it was to be, never between, and no byte of the data is lost.
@Suite(.serialized) struct UpdateKillTests {
  private static let kills =
    ProcessInfo.processInfo.environment["SANDBOXCTL_STRESS"] != nil ? 200 : 20

  @Test func anUpdateIsDoneOrNot() throws {
    let rig = try AppUpdateRig()
    let data = try rig.data()
    _ = try Program.run("cp", ["-a", "device", "before"], in: rig.cli.folder.url)
    let command = "update New.app --root device --no-snapshot --force --quiet"
    try kill(rig, command, from: "before") { what in
      let version = try rig.version()
      #expect(version == "3.2" || version == "9.0", "\(what): \(String(describing: version))")
      #expect(try rig.data() == data, "\(what)")
      return version == "9.0"
    }
  }

  @Test func anInstallationIsDoneOrNot() throws {
    let rig = try AppUpdateRig()
    for container in try rig.cli.containers(of: "device")
    where container.path.isWithin("apps/org.example.notebook") {
      try Folder.open(path: container.realPath.folderPath)
        .removeTree(container.realPath.lastComponent ?? "")
    }
    try rig.cli.folder.write(
      "waits", at: "device/.sandboxctl/safe-harbor/apps/org.example.notebook/data/Documents/thesis")
    _ = try Program.run("cp", ["-a", "device", "before"], in: rig.cli.folder.url)
    let waiting: ByteString =
      "device/.sandboxctl/safe-harbor/apps/org.example.notebook/data/Documents/thesis"
    try kill(rig, "install New.app --root device --no-snapshot --force --quiet", from: "before") {
      what in
      let isDone = try rig.version() == "9.0"
      let adopted = try rig.data()["apps/org.example.notebook/data/Documents/thesis"]
      let isWaiting = (try? rig.cli.folder.read(waiting)) != nil
      #expect((adopted != nil) == isDone && isWaiting == !isDone, "\(what)")
      return isDone
    }
  }

  @Test func aRollbackIsDoneOrNot() throws {
    let rig = try AppUpdateRig()
    let before = try rig.data()
    _ = try rig.cli.succeed("update New.app --root device --repo repo --quiet")
    let home = try #require(
      try rig.cli.containers(of: "device").first { $0.path == "apps/org.example.notebook/data" })
    let documents = try Folder.open(path: home.realPath.appending("Documents"))
    try documents.create("new").write(Array("written since".utf8))
    let after = try rig.data()
    _ = try Program.run("cp", ["-a", "device", "updated"], in: rig.cli.folder.url)
    let command =
      "rollback notebook --root device --repo repo --data before --no-snapshot --force --quiet"
    try kill(rig, command, from: "updated") { what in
      let isDone = try rig.version() == "3.2"
      #expect(try rig.data() == (isDone ? before : after), "\(what)")
      return isDone
    }
  }

  /// Kills a command again and again; `check` looks at the device after each recovery, and tells whether
  /// the command was done.
  private func kill(
    _ rig: AppUpdateRig, _ command: String, from copy: String, _ check: (String) throws -> Bool
  ) throws {
    var random = Seeded.fresh()
    var (done, kills, rounds, hasBackedUp) = (Set<Bool>(), 0, 0, false)
    try rig.reset(from: copy)
    let start = Host.monotonicSeconds()
    _ = try rig.cli.succeed(command)
    let duration = Host.monotonicSeconds() - start
    let calls = "renameat2,mkdirat,fsync,syncfs,unlinkat"
    while kills < Self.kills, rounds < 4 * Self.kills {
      rounds += 1
      try rig.reset(from: copy)
      var wrapper: [String]
      var what: String
      var strace: Strace?
      if Strace.isPermitted, rounds.isMultiple(of: 2) {
        let number = Int.random(in: 1...30, using: &random)
        let tracer = try Strace(calls, killingAt: number)
        (wrapper, what, strace) = (tracer.command, "killed at call \(number)", tracer)
      } else {
        let moment = Double.random(in: 0.005...max(0.02, duration), using: &random)
        wrapper = ["timeout", "--signal=KILL", String(format: "%.3f", moment)]
        what = "killed after \(moment) s"
      }
      let outcome = try rig.cli.run(command, under: wrapper)
      withExtendedLifetime(strace) {}
      if outcome.code != 0 { kills += 1 }
      // A backup in between stores what is there, and says that it is in the middle of something.
      if rig.isInterrupted, !hasBackedUp {
        let backup = try rig.cli.run("backup --root device --repo repo --quiet")
        #expect(backup.code == 3 && backup.errors.contains("was interrupted"), "\(what)")
        hasBackedUp = true
      }
      // Nothing is left of it that was neither finished nor taken back.
      if rig.isInterrupted { _ = try rig.cli.succeed("recover --root device --quiet") }
      #expect(!rig.isInterrupted, "\(what)")
      done.insert(try check(what))
      #expect(!rig.hasStaging, "\(what)")
    }
    #expect(kills == Self.kills)
    #expect(done.contains(false))
  }
}

import SystemIO
import TestSupport
import Testing

/// What changes an app, killed at random moments: after the recovery the device is as it was or as it was
/// to be, never between, and no byte of the data is lost.
@Suite(.serialized, .enabled(if: Strace.isPermitted)) struct UpdateKillTests {
  private static let ends = "--root device --no-snapshot --force --quiet"

  @Test func anUpdateIsDoneOrNot() throws {
    let rig = try KillFixture()
    _ = try rig.cli.succeed("init repo --plain")
    let loop = try KillLoop(rig, "update New.app \(Self.ends)")
    try expectDocuments(loop.before, .containers, loop.after, .containers)
    try loop.run(backingUp: true)
  }

  @Test func anInstallationIsDoneOrNot() throws {
    let rig = try KillFixture(isInstalled: false)
    try rig.fillHarbor()
    let loop = try KillLoop(rig, "install New.app \(Self.ends)")
    try expectDocuments(loop.before, .harbor, loop.after, .containers, count: 2)
    #expect(loop.after.documents(in: .harbor).isEmpty)
    try loop.run()
  }

  @Test func aRollbackIsDoneOrNot() throws {
    let rig = try KillFixture()
    _ = try rig.cli.succeed("init repo --plain")
    let original = try DeviceContent(rig.cli.directory)
    _ = try rig.cli.succeed("update New.app --root device --repo repo --quiet")
    try rig.cli.directory.directory.directory("device").directory(".sandboxctl").removeTree("trash")
    try rig.documents().create("new").write(Array("written since".utf8))
    try rig.documents().directory("deep/er").remove("note")
    let loop = try KillLoop(rig, "rollback one --repo repo --data before \(Self.ends)")
    try expectDocuments(original, .containers, loop.after, .containers)
    #expect(loop.after.documents(in: .trash).keys.contains("new"))
    try loop.run()
  }

  @Test func anOffloadIsDoneOrNot() throws {
    let rig = try KillFixture()
    let loop = try KillLoop(rig, "offload one \(Self.ends)")
    try expectDocuments(loop.before, .containers, loop.after, .containers)
    try loop.run()
  }

  @Test func aReinstallationIsDoneOrNot() throws {
    let rig = try KillFixture()
    _ = try rig.cli.succeed("offload one \(Self.ends)")
    let loop = try KillLoop(rig, "reinstall New.app \(Self.ends)")
    try expectDocuments(loop.before, .containers, loop.after, .containers)
    try loop.run()
  }

  @Test func anUninstallationIsDoneOrNot() throws {
    let rig = try KillFixture()
    let loop = try KillLoop(rig, "uninstall one \(Self.ends)")
    try expectDocuments(loop.before, .containers, loop.after, .trash)
    #expect(loop.after.documents(in: .containers).isEmpty)
    try loop.run()
  }

  /// Holds that what was done has the bytes of all Documents that were there before.
  private func expectDocuments(
    _ before: DeviceContent, _ from: DeviceContent.Location, _ after: DeviceContent,
    _ to: DeviceContent.Location, count: Int = 7
  ) throws {
    let documents = before.documents(in: from)
    try #require(documents.count == count, "\(documents.keys)")
    #expect(after.documents(in: to) == documents)
  }
}

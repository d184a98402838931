import SystemIO
import TestSupport
import Testing

/// Commands that change an app, killed at random moments: after the recovery the device is in the
/// old or the new state, never in between, and no byte of the data is lost.
@Suite(.serialized, .enabled(if: Strace.isPermitted)) struct UpdateKillTests {
  private static let ends = "--root device --no-snapshot --force --quiet"

  @Test func killedUpdateIsDoneOrNot() throws {
    let fixture = try KillFixture()
    _ = try fixture.cli.succeed("init repo --plain")
    let loop = try KillLoop(fixture, "update New.app \(Self.ends)")
    try expectDocuments(loop.before, .containers, loop.after, .containers)
    try loop.run(backingUp: true)
  }

  @Test func killedInstallationIsDoneOrNot() throws {
    let fixture = try KillFixture(isInstalled: false)
    try fixture.fillHarbor()
    let loop = try KillLoop(fixture, "install New.app \(Self.ends)")
    try expectDocuments(loop.before, .harbor, loop.after, .containers, count: 2)
    #expect(loop.after.documents(in: .harbor).isEmpty)
    try loop.run()
  }

  @Test func killedRollbackIsDoneOrNot() throws {
    let fixture = try KillFixture()
    _ = try fixture.cli.succeed("init repo --plain")
    let original = try DeviceContent(fixture.cli.directory)
    _ = try fixture.cli.succeed("update New.app --root device --repo repo --quiet")
    try fixture.cli.directory.directory.directory("device").directory(".sandboxctl").removeTree(
      "trash")
    try fixture.documents().create("new").write(Array("written since".utf8))
    try fixture.documents().directory("deep/er").remove("note")
    let loop = try KillLoop(fixture, "rollback one --repo repo --data before \(Self.ends)")
    try expectDocuments(original, .containers, loop.after, .containers)
    #expect(loop.after.documents(in: .trash).keys.contains("new"))
    try loop.run()
  }

  @Test func killedOffloadIsDoneOrNot() throws {
    let fixture = try KillFixture()
    let loop = try KillLoop(fixture, "offload one \(Self.ends)")
    try expectDocuments(loop.before, .containers, loop.after, .containers)
    try loop.run()
  }

  @Test func killedReinstallationIsDoneOrNot() throws {
    let fixture = try KillFixture()
    _ = try fixture.cli.succeed("offload one \(Self.ends)")
    let loop = try KillLoop(fixture, "reinstall New.app \(Self.ends)")
    try expectDocuments(loop.before, .containers, loop.after, .containers)
    try loop.run()
  }

  @Test func killedUninstallationIsDoneOrNot() throws {
    let fixture = try KillFixture()
    let loop = try KillLoop(fixture, "uninstall one \(Self.ends)")
    try expectDocuments(loop.before, .containers, loop.after, .trash)
    #expect(loop.after.documents(in: .containers).isEmpty)
    try loop.run()
  }

  /// Expects the documents after the operation to have the same bytes as before.
  private func expectDocuments(
    _ before: DeviceContent, _ from: DeviceContent.Location, _ after: DeviceContent,
    _ to: DeviceContent.Location, count: Int = 7
  ) throws {
    let documents = before.documents(in: from)
    try #require(documents.count == count, "\(documents.keys)")
    #expect(after.documents(in: to) == documents)
  }
}

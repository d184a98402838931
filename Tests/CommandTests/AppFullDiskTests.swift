import Foundation
import SystemIO
import TestSupport
import Testing

/// Commands that change apps on a device whose volume is full: exit status 1, the missing space, a
/// hint, and an unchanged device.
@Suite(.serialized, .enabled(if: (try? Mount.isPermitted()) ?? false)) struct AppFullDiskTests {
  private let fixture: KillFixture
  private let mount: Mount

  init() throws {
    fixture = try KillFixture()
    try fixture.copy(to: "kept")
    try fixture.cli.directory.directory.removeTree("device")
    try fixture.cli.directory.directory.createDirectory("device")
    mount = try Mount(inMemory: "size=1m,nr_inodes=200", on: fixture.cli.directory.path("device"))
    let outcome = try Program.run("cp", ["-a", "kept/.", "device"], in: fixture.cli.directory.url)
    try #require(outcome.code == 0, "\(outcome.errors)")
  }

  @Test func updateThatDoesNotFitIsRefusedBeforehand() throws {
    let before = try DeviceContent(fixture.cli.directory)
    try fixture.cli.directory.write([UInt8](repeating: 7, count: 2_000_000), at: "New.app/table")
    let line = "update New.app --root device"
    let dry = try fixture.cli.run("\(line) --dry-run")
    #expect(dry.code == 1)
    #expect(dry.errors.contains("would be refused: in '"), "\(dry.errors)")
    #expect(dry.errors.contains("are needed, but only") && dry.errors.contains("free space on"))
    let json = try fixture.cli.run("\(line) --dry-run --json")
    #expect(json.code == 1)
    let refusals = try CommandLine.object(json.output)["refusals"] as? [[String: Any]]
    #expect(refusals?.map { $0["code"] as? String } == ["no-room"])
    let real = try fixture.cli.run("\(line) --no-snapshot --force")
    #expect(real.code == 1)
    #expect(real.errors.contains("cannot update 'org.example.one' in '"), "\(real.errors)")
    #expect(real.errors.contains("are needed, but only") && real.errors.contains("hint: free"))
    #expect(try DeviceContent(fixture.cli.directory) == before)
    // An update that fits is not refused.
    try fixture.cli.directory.directory.directory("New.app").remove("table")
    #expect(try fixture.cli.run("\(line) --dry-run").code == 0)
    withExtendedLifetime(mount) {}
  }

  @Test(arguments: ["offload one", "uninstall one", "reinstall New.app"])
  func fullVolumeIsReported(command: String) throws {
    let line = "\(command) --root device --no-snapshot --force --quiet"
    if command.hasPrefix("reinstall") {
      _ = try fixture.cli.succeed("offload one --root device --no-snapshot --force --quiet")
    }
    let before = try DeviceContent(fixture.cli.directory)
    let device = try Directory.open(path: fixture.cli.directory.path("device"))
    let filler = try device.create("filler")
    while (try? filler.write([UInt8](repeating: 1, count: 4096))) != nil {}
    let outcome = try fixture.cli.run(line)
    #expect(outcome.code == 1)
    let isRefusedBeforehand = command.hasPrefix("reinstall")
    #expect(
      outcome.errors.contains(
        isRefusedBeforehand ? "0 B are free there" : "no space or inodes left"),
      "\(outcome.errors)")
    #expect(outcome.errors.contains("hint: free"), "\(outcome.errors)")
    try filler.truncate(to: 0)
    try device.remove("filler")
    _ = try fixture.cli.succeed("recover --root device --quiet")
    #expect(try DeviceContent(fixture.cli.directory) == before)
    _ = try fixture.cli.succeed(line)
    #expect(try DeviceContent(fixture.cli.directory) != before)
    withExtendedLifetime(mount) {}
  }
}

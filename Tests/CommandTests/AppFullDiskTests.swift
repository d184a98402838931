import Foundation
import SystemIO
import TestSupport
import Testing

/// The commands that change apps on a device whose volume has no room: exit status 1, what is missing, what
/// to do, and nothing is changed.
@Suite(.serialized, .enabled(if: (try? Mount.isPermitted()) ?? false)) struct AppFullDiskTests {
  private let rig: KillFixture
  private let mount: Mount

  init() throws {
    rig = try KillFixture()
    try rig.copy(to: "kept")
    try rig.cli.directory.directory.removeTree("device")
    try rig.cli.directory.directory.createDirectory("device")
    mount = try Mount(inMemory: "size=1m,nr_inodes=200", on: rig.cli.directory.path("device"))
    let outcome = try Program.run("cp", ["-a", "kept/.", "device"], in: rig.cli.directory.url)
    try #require(outcome.code == 0, "\(outcome.errors)")
  }

  @Test func whatDoesNotFitIsToldBeforehand() throws {
    let before = try DeviceContent(rig.cli.directory)
    try rig.cli.directory.write([UInt8](repeating: 7, count: 2_000_000), at: "New.app/table")
    let line = "update New.app --root device"
    let dry = try rig.cli.run("\(line) --dry-run")
    #expect(dry.code == 1)
    #expect(dry.errors.contains("it would be refused: in '"), "\(dry.errors)")
    #expect(dry.errors.contains("are to be written, and") && dry.errors.contains("free space on"))
    let json = try rig.cli.run("\(line) --dry-run --json")
    #expect(json.code == 1)
    let refusals = try CommandLine.object(json.output)["refusals"] as? [[String: Any]]
    #expect(refusals?.map { $0["code"] as? String } == ["no-room"])
    let real = try rig.cli.run("\(line) --no-snapshot --force")
    #expect(real.code == 1)
    #expect(real.errors.contains("cannot update 'org.example.one' in '"), "\(real.errors)")
    #expect(real.errors.contains("are to be written, and") && real.errors.contains("hint: free"))
    #expect(try DeviceContent(rig.cli.directory) == before)
    // What fits is neither refused nor said to be.
    try rig.cli.directory.directory.directory("New.app").remove("table")
    #expect(try rig.cli.run("\(line) --dry-run").code == 0)
    withExtendedLifetime(mount) {}
  }

  @Test(arguments: ["offload one", "uninstall one", "reinstall New.app"])
  func aFullVolumeIsTold(command: String) throws {
    let line = "\(command) --root device --no-snapshot --force --quiet"
    if command.hasPrefix("reinstall") {
      _ = try rig.cli.succeed("offload one --root device --no-snapshot --force --quiet")
    }
    let before = try DeviceContent(rig.cli.directory)
    let device = try Directory.open(path: rig.cli.directory.path("device"))
    let filler = try device.create("filler")
    while (try? filler.write([UInt8](repeating: 1, count: 4096))) != nil {}
    let outcome = try rig.cli.run(line)
    #expect(outcome.code == 1)
    let isToldBeforehand = command.hasPrefix("reinstall")
    #expect(
      outcome.errors.contains(
        isToldBeforehand ? "0 B are free there" : "no space or no inode left"),
      "\(outcome.errors)")
    #expect(outcome.errors.contains("hint: free"), "\(outcome.errors)")
    try filler.truncate(to: 0)
    try device.remove("filler")
    _ = try rig.cli.succeed("recover --root device --quiet")
    #expect(try DeviceContent(rig.cli.directory) == before)
    _ = try rig.cli.succeed(line)
    #expect(try DeviceContent(rig.cli.directory) != before)
    withExtendedLifetime(mount) {}
  }
}

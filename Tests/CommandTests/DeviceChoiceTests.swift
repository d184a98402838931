import Foundation
import SystemIO
import TestSupport
import Testing

/// `--device NAME` selects one of the available devices.
struct DeviceChoiceTests {
  private let cli: CommandLine
  private static let udid = "11111111-2222-4333-8444-555555555555"

  /// Makes a directory with two devices, the second under another name.
  init() throws {
    cli = try CommandLine(inMemory: true)
    _ = try Directory.make(path: cli.directory.path("devices"))
    _ = try cli.succeed("sample devices/first")
    try cli.copy("devices/first", to: "devices/second")
    try rename("devices/second", "Old iPhone", Self.udid)
  }

  private func rename(_ device: String, _ name: String, _ udid: String) throws {
    let path = ByteString("\(device)/device.plist")
    let text = String(decoding: try cli.directory.read(path), as: UTF8.self)
    try cli.directory.write(
      text.replacing("<string>Sample iPhone</string>", with: "<string>\(name)</string>")
        .replacing(/<key>UDID<\/key>\s*<string>[^<]*</) { _ in "<key>UDID</key><string>\(udid)<" },
      at: path)
  }

  private func root(_ words: [String]) throws -> String? {
    let outcome = try cli.run(["apps", "--json"] + words)
    #expect(outcome.code == 0, "\(words): \(outcome.errors)")
    return try CommandLine.object(outcome.output)["root"] as? String
  }

  @Test(arguments: ["Old iPhone", "old iphone", "second", udid, "udid:\(udid)"])
  func deviceIsSelectedByItsName(_ name: String) throws {
    let found = try root(["--root", "devices", "--device", name])
    #expect(found == cli.directory.string + "/devices/second")
  }

  @Test func everyCommandWithARootAcceptsAName() throws {
    _ = try cli.succeed("init repo --plain --no-default")
    _ = try cli.succeed("backup --root devices --device second --repo repo --quiet")
    let snapshot = try #require(try cli.jsonLines("snapshots --json --repo repo").first)
    #expect(snapshot["root"] as? String == cli.directory.string + "/devices/second")
    #expect(snapshot["device"] as? String == "udid:\(Self.udid)")
    for line in [
      "classify notebook --summary", "explain notebook/Documents", "purge --query", "trash list",
      "trash empty", "recover", "uninstall notebook --dry-run",
    ] {
      let outcome = try cli.run("\(line) --root devices --device second")
      #expect(outcome.code == 0, "\(line): \(outcome.errors)")
    }
  }

  @Test func unknownNameListsTheDevices() throws {
    let outcome = try cli.run("apps --root devices --device iPad")
    #expect(outcome.code == 1 && outcome.errors.contains("cannot find the device 'iPad'"))
    for name in ["'Sample iPhone'", "'Old iPhone'", Self.udid] {
      #expect(outcome.errors.contains(name), "\(outcome.errors)")
    }
  }

  @Test func nameOfTwoDevicesIsAmbiguous() throws {
    try rename("devices/first", "Old iPhone", "99999999-2222-4333-8444-555555555555")
    let outcome = try cli.run(["apps", "--root", "devices", "--device", "Old iPhone"])
    #expect(outcome.code == 1 && outcome.errors.contains("several devices have this name"))
    #expect(outcome.errors.contains(Self.udid) && outcome.errors.contains("99999999-2222"))
    #expect(try root(["--root", "devices", "--device", Self.udid]) != nil)
  }

  @Test func directoryOfDevicesGivesAHint() throws {
    let outcome = try cli.run("apps --root devices")
    #expect(
      outcome.code == 1 && outcome.errors.contains("it is not a device, but contains devices"))
    #expect(outcome.errors.contains("select one with '--device NAME': "), "\(outcome.errors)")
    #expect(outcome.errors.contains("'Old iPhone' (\(Self.udid), coresimulator)"))
  }

  /// Without a root the names are those of this user's devices, including a Mac user's simulators.
  @Test func devicesOfTheUserHaveNames() throws {
    try cli.directory.write("x", at: "home/.var/app/org.example.A/data/x")
    try cli.directory.write("x", at: "home/snap/reader/7/x")
    try Directory.open(path: cli.directory.path("home/snap/reader")).createLink("current", to: "7")
    try cli.copy("devices/second", to: "home/Library/Developer/CoreSimulator/Devices/\(Self.udid)")
    let home = cli.directory.string + "/home"
    #expect(try root(["--device", "snap"]) == home + "/snap")
    #expect(try root(["--device", home + "/.var/app"]) == home + "/.var/app")
    #expect(
      try root(["--device", "Old iPhone"])
        == home + "/Library/Developer/CoreSimulator/Devices/\(Self.udid)")
    let outcome = try cli.run("apps --device nobody")
    #expect(outcome.code == 1 && outcome.errors.contains("'\(home)/snap' (snap)"), "\(outcome)")
    // Commands that change an app never use the default device, only the named one.
    #expect(try cli.run("uninstall reader --dry-run").code == 2)
    #expect(try cli.succeed("uninstall reader --device snap --dry-run").contains("snap remove"))
  }

  @Test func missingDeviceIsReported() throws {
    let outcome = try cli.run("apps --device iPad")
    #expect(outcome.code == 1 && outcome.errors.contains("no device found"))
  }
}

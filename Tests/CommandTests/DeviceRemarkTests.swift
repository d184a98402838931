import Foundation
import SystemIO
import TestSupport
import Testing

/// Remarks of a backup about the device itself.
struct DeviceRemarkTests {
  @Test func unreadableContainerDirectoryIsReported() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    let extensions = "device/data/Containers/Data/PluginKitPlugin"
    _ = try Program.run("chmod", ["000", cli.directory.string + "/" + extensions])
    _ = try Program.run("chown", ["-R", "nobody", cli.directory.string])
    #expect(try cli.runAsNobody("init repo --plain").code == 0)
    let outcome = try cli.runAsNobody("backup --root device --repo repo")
    #expect(outcome.code == 3)
    #expect(outcome.errors.contains("not in the snapshot: data/Containers/Data/PluginKitPlugin"))
    #expect(try cli.runAsNobody("ls latest:apps --repo repo").output.contains("notebook"))
  }

  @Test func linkedContainerDirectoryIsFollowedAndReported() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    let root = try Directory.open(path: cli.directory.path)
    let data = try root.directory("device").directory("data").directory("Containers").directory(
      "Data")
    try data.rename("Application", to: "moved", in: root)
    try data.createLink("Application", to: cli.directory.path("moved"))
    _ = try cli.succeed("init repo --plain")
    let outcome = try cli.run("backup --root device --repo repo")
    #expect(outcome.code == 0)
    #expect(outcome.errors.contains("data/Containers/Data/Application"))
    let listed = try cli.succeed("ls latest:apps/org.example.notebook/data --repo repo")
    #expect(listed.contains("Documents"))
  }

  @Test func unknownVersionIsReportedOnce() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    try Directory.open(path: cli.directory.path("device")).remove("device.plist")
    let note = "the device's OS version is unknown"
    let outcome = try cli.run("classify --root device/data --summary")
    #expect(outcome.errors.components(separatedBy: note).count == 2, "\(outcome.errors)")
    #expect(try !cli.run("classify --root device/data --summary --quiet").errors.contains(note))
    let reported = try cli.run("classify --root device/data --summary --os-version 16.4")
    #expect(!reported.errors.contains(note))
  }

  /// Each command that depends on the version reports it once for a device, whatever the number of
  /// containers.
  @Test func everyCommandReportsAnUnknownVersionOnce() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    try Directory.open(path: cli.directory.path("device")).remove("device.plist")
    _ = try cli.succeed("init repo --plain")
    let note = "the device's OS version is unknown"
    for line in [
      "backup --root device/data --dry-run", "backup --root device/data --repo repo",
      "purge --root device/data --query", "explain --root device/data notebook/Documents",
      "uninstall notebook --root device/data --dry-run",
    ] {
      let outcome = try cli.run(line)
      #expect(outcome.errors.components(separatedBy: note).count == 2, "\(line): \(outcome.errors)")
    }
  }

  /// Several containers of one kind are listed as one word with a count.
  @Test func containersOfOneKindAreCounted() throws {
    let cli = try CommandLine()
    _ = try cli.succeed("sample device")
    let locations = cli.directory.string + "/device/data/Containers/Data/Application"
    let container = try #require(
      try cli.containers(of: "device").first { $0.path == "apps/org.example.notebook/data" })
    for number in 0..<11 {
      let copy = "\(locations)/0A0A0A0A-0000-4000-8000-0000000000\(10 + number)"
      _ = try Program.run("cp", ["-a", "\(container.realPath)", copy])
    }
    let text = try cli.succeed("apps --root device")
    let line = try #require(
      text.split(separator: "\n").first { $0.contains("org.example.notebook ") })
    #expect(line.contains("bundle, 12 × data") && !line.contains("data, data"), "\(line)")
  }
}

import DeviceDiscovery
import Foundation
import SandboxModel
import SystemIO
import TestSupport
import Testing

struct FlatpakTests {
  private func home() throws -> TemporaryDirectory {
    let home = try TemporaryDirectory()
    for name in ["config/settings.ini", "data/db", "cache/blob", ".local/state/x", ".dir/x"] {
      try home.file(".var/app/org.example.Hello/\(name)", "x")
    }
    try home.file(".var/app/org.gone.App/data/x", "x")
    try home.file(".var/app/.sandboxctl/journal/x", "x")
    try home.file(".local/share/flatpak/overrides/org.example.Hello", "[Context]\n")
    try home.file(".local/share/flatpak/overrides/global", "[Context]\n")
    let app = ".local/share/flatpak/app/org.installed.Only"
    try home.link(app + "/current", to: "x86_64/stable")
    try home.link(app + "/x86_64/stable/active", to: "abc123")
    let deployed = app + "/x86_64/stable/abc123"
    try home.file(
      deployed + "/metadata", "[Application]\nname=x\nruntime=org.example.Platform/x86_64/1\n")
    try home.file(
      deployed + "/export/share/applications/org.installed.Only.desktop",
      "[Desktop Entry]\n# c\nName = Only One\nName[de]=Nur\n[Desktop Action x]\nName=Other\n")
    try home.file(
      deployed + "/files/share/metainfo/org.installed.Only.metainfo.xml",
      "<component><releases>\n<release date='x' version=\"3.1\"/><release version='3.0'/>")
    try home.file(
      ".local/share/flatpak/repo/config", "[remote \"lab\"]\nurl=https://example.org/repo\n")
    return home
  }

  private func find(_ root: String) throws -> Device {
    try DeviceFinder(machineID: "m", systemFlatpak: nil).find(ByteString(root))
  }

  @Test func findsDataSettingsAndInstalledApps() throws {
    let home = try home()
    let device = try find(home.string)
    #expect(device.layout == .flatpak)
    #expect(device.root == ByteString(home.string + "/.var/app"))
    #expect(
      device.logicalPrefixes == [
        "apps/org.example.Hello/data", "apps/org.example.Hello/settings", "apps/org.gone.App/data",
      ])
    #expect(
      device.apps.map(\.identifier.bytes)
        == ["org.example.Hello", "org.gone.App", "org.installed.Only"])
    #expect(device.apps.map(\.isInstalled) == [false, false, true])
    #expect(device.findings.map(\.code) == [.unsupported])
    #expect(device.identity == .location(machine: "m", .flatpak, root: device.root))
    #expect(device.identity.description == "place:m:flatpak:\(home.string)/.var/app")
  }

  /// Before the first start of a Flatpak app, there is no `.var/app`.
  @Test func installedAppsOfANewHomeAreFound() throws {
    let home = try home()
    try home.directory.removeTree(".var")
    let apps = DeviceFinder(machineID: "m", systemFlatpak: nil).flatpaks(inNewHome: home.path)
      .filter(\.isInstalled)
    #expect(apps.map(\.identifier.bytes) == ["org.installed.Only"])
    #expect(apps.map(\.version) == ["3.1"])
  }

  @Test func deploymentsAreFound() throws {
    let home = try home()
    let app = try find(home.string).app("only one")
    #expect(app.version == "3.1")
    let installation = try #require(app.installation)
    #expect(installation.scope == .user)
    #expect(installation.architecture == "x86_64")
    #expect(installation.branch == "stable")
    #expect(installation.commit == "abc123")
    #expect(installation.runtime == "org.example.Platform/x86_64/1")
    #expect(installation.origin == nil)
  }

  @Test func readsTheDeploymentRecord() throws {
    let home = try home()
    let deployed = ".local/share/flatpak/app/org.installed.Only/x86_64/stable/abc123"
    var record = Array("lab\0abc123\0".utf8)
    for (key, value) in [("appdata-version", "9.9"), ("appdata-name", "Recorded")] {
      while record.count % 8 != 0 { record.append(0) }
      record += Array(key.utf8) + [0]
      while record.count % 8 != 0 { record.append(0) }
      record += Array(value.utf8) + [0, 0, UInt8(ascii: "s"), 0x10]
    }
    try home.file(deployed + "/deploy", record)
    let app = try find(home.string).app("recorded")
    #expect(app.version == "9.9")
    #expect(app.installation?.origin == "lab")
    #expect(app.installation?.remoteURL == "https://example.org/repo")
    for cut in 0..<record.count {
      try home.file(deployed + "/deploy", Array(record.prefix(cut)))
      #expect(try find(home.string).apps.count == 3)
    }
  }

  @Test func findsTheSameFromTheAppDirectory() throws {
    let home = try home()
    let device = try find(home.string + "/.var/app")
    #expect(try device.logicalPrefixes == find(home.string).logicalPrefixes)
    #expect(try device.identity == find(home.string).identity)
    try home.makeDirectory("copy")
    try FileManager.default.moveItem(
      at: home.url.appendingPathComponent(".var/app"),
      to: home.url.appendingPathComponent("copy/apps"))
    let copy = try find(home.string + "/copy/apps")
    #expect(copy.layout == .flatpak)
    #expect(copy.logicalPrefixes == ["apps/org.example.Hello/data", "apps/org.gone.App/data"])
  }

  @Test func settingsAreOneFileInTheirDirectory() throws {
    let home = try home()
    let device = try find(home.string)
    let container = try #require(device.containers.first { $0.kind == .settings })
    #expect(container.member == "org.example.Hello")
    let file = ByteString(home.string + "/.local/share/flatpak/overrides/org.example.Hello")
    #expect(container.absolutePath.appending("org.example.Hello") == file)
    let logical = try #require(try device.logicalPath(ofPath: file))
    #expect(logical.bytes == "apps/org.example.Hello/settings/org.example.Hello")
    #expect(try device.realPath(of: logical) == file)
    let other = ByteString(home.string + "/.local/share/flatpak/overrides/global")
    #expect(try device.logicalPath(ofPath: other) == nil)
    #expect(throws: ModelError.self) {
      try device.realPath(of: LogicalPath("apps/org.example.Hello/settings/global"))
    }
  }

  @Test func linkedDataIsFollowedAndReported() throws {
    let home = try home()
    try FileManager.default.moveItem(
      at: home.url.appendingPathComponent(".var/app/org.gone.App"),
      to: home.url.appendingPathComponent("elsewhere"))
    try home.link(".var/app/org.gone.App", to: "../../elsewhere")
    let device = try find(home.string)
    let app = try device.app("org.gone.App")
    #expect(
      device.containers(of: app).map(\.absolutePath) == [ByteString(home.string + "/elsewhere")])
    #expect(device.findings(.linkFollowed).map(\.path) == ["org.gone.App"])
  }

  @Test func invalidDeploymentsAreReported() throws {
    let home = try home()
    let app = home.url.appendingPathComponent(".local/share/flatpak/app/org.installed.Only/current")
    try FileManager.default.removeItem(at: app)
    try FileManager.default.createSymbolicLink(
      atPath: app.path, withDestinationPath: "../../../../../etc")
    let device = try find(home.string)
    #expect(device.findings(.wrongValue).count == 1)
    #expect(device.apps.map(\.identifier.bytes) == ["org.example.Hello", "org.gone.App"])
  }
}

/// Apps that the real Flatpak installed and ran.
@Suite(.enabled(if: Shared.has(FlatpakLab.material)))
struct RealFlatpakTests {
  @Test func findsAppsThatFlatpakInstalledAndRan() throws {
    let directory = try TemporaryDirectory()
    let lab = try FlatpakLab(
      in: directory, apps: ["org.example.Hello", "org.example.Idle"], running: ["org.example.Hello"]
    )
    try lab.flatpak(["--user", "override", "--nosocket=x11", "org.example.Hello"])
    let list = try lab.flatpak([
      "--user", "list", "--app", "--columns=application,branch,origin,active:f,arch",
    ])
    let expected = list.split(separator: "\n").map {
      $0.split(separator: "\t").map { ByteString(String($0)) }
    }
    #expect(expected.count == 2)

    let finder = DeviceFinder(systemFlatpak: nil)
    let device = try finder.find(ByteString(directory.string + "/home"))
    #expect(device.layout == .flatpak)
    #expect(
      device.logicalPrefixes == [
        "apps/org.example.Hello/data", "apps/org.example.Hello/settings",
      ])
    #expect(device.apps.map(\.identifier.bytes) == ["org.example.Hello", "org.example.Idle"])
    for (app, fields) in zip(device.apps, expected) where fields.count == 5 {
      let installation = try #require(app.installation)
      #expect(app.identifier.bytes == fields[0])
      #expect(installation.branch == fields[1])
      #expect(installation.origin == fields[2])
      #expect(installation.commit.bytes.starts(with: fields[3].bytes))
      #expect(installation.architecture == fields[4])
      #expect(installation.commit.count == 64)
      #expect(installation.remoteURL == ByteString("file://\(directory.string)/flatpak-lab/repo"))
    }
    #expect(
      device.apps.map(\.displayName) == ["Hello org.example.Hello", "Hello org.example.Idle"])
    #expect(device.findings.isEmpty)
  }
}

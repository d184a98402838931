import DeviceDiscovery
import Foundation
import SandboxModel
import SystemIO
import TestSupport

/// A small device in memory with one app, its extension and all kinds of entries in its data, and a
/// new version of the app. There is no repository, so that a run of the program is fast.
struct KillFixture {
  let cli: CommandLine
  private static let app = "org.example.one"
  private static let data: ByteString =
    "device/Containers/Data/Application/0A0A0A0A-0000-4000-8000-000000000001"
  private static let share: ByteString =
    "device/Containers/Data/PluginKitPlugin/0B0B0B0B-0000-4000-8000-000000000002"
  private static let bundle: ByteString =
    "device/Containers/Bundle/Application/0C0C0C0C-0000-4000-8000-000000000003"

  init(isInstalled: Bool = true) throws {
    cli = try CommandLine(inMemory: true)
    try makeBundle("New.app", version: "9.0")
    for location: ByteString in ["Bundle/Application", "Data/Application", "Shared/AppGroup"] {
      _ = try Directory.make(path: cli.directory.path("device/Containers").appending(location))
    }
    if isInstalled { try makeApp() }
  }

  private func put(_ text: String, _ path: ByteString) throws {
    try cli.directory.write(text, at: path)
  }

  private static func info(_ identifier: String, _ version: String) -> String {
    """
    <plist><dict><key>CFBundleIdentifier</key><string>\(identifier)</string>
    <key>CFBundleShortVersionString</key><string>\(version)</string>
    <key>CFBundleVersion</key><string>\(version)</string></dict></plist>
    """
  }

  private func makeBundle(_ path: ByteString, version: String) throws {
    try put(Self.info(Self.app, version), path.appending("Info.plist"))
    try put("program \(version)", path.appending("Example"))
    try put("words \(version)", path.appending("en.lproj/Words"))
    try put(
      Self.info(Self.app + ".share", version), path.appending("PlugIns/share.appex/Info.plist"))
  }

  private func makeContainer(_ path: ByteString, of identifier: String) throws {
    try put(
      """
      <plist><dict><key>MCMMetadataIdentifier</key><string>\(identifier)</string>
      <key>MCMMetadataUUID</key><string>\(path.lastComponent ?? "")</string></dict></plist>
      """, path.appending(AppUpdateFixture.metadata))
  }

  private func makeApp() throws {
    try makeBundle(Self.bundle.appending("Example.app"), version: "1.0")
    try makeContainer(Self.bundle, of: Self.app)
    try makeContainer(Self.data, of: Self.app)
    for (path, text) in [
      "Documents/thesis.txt": String(repeating: "a thesis ", count: 2000),
      "Documents/deep/er/note": "note", "Documents/Inbox/letter.pdf": "letter",
      "Documents/n.sqlite": "SQLite format 3\0", "Documents/n.sqlite-wal": "log",
      "Library/Preferences/\(Self.app).plist": "settings", "Library/Caches/img/a.png": "picture",
      "Library/Application Support/state": "state", "tmp/upload": "temporary",
      "StoreKit/receipt": "unknown",
    ] { try put(text, Self.data.appending(ByteString(path))) }
    try put(
      "bytes", Self.data.appending(ByteString("Documents/scan \u{e9}".utf16.map { UInt8($0) })))
    let home = try Directory.open(path: cli.directory.path(Self.data))
    let documents = try home.directory("Documents")
    try documents.createLink("own", to: home.path.appending("Library/Caches"))
    try documents.createLink("foreign", to: "/usr/share/dict")
    try documents.createHardLink("twin", to: "thesis.txt", in: documents)
    try documents.createDirectory("empty")
    try makeContainer(Self.share, of: Self.app + ".share")
    try put("draft", Self.share.appending("Documents/draft"))
  }

  /// The device as this process sees it.
  func device() throws -> Device {
    try DeviceFinder(layout: .coreSimulator, machineID: "m", systemFlatpak: nil)
      .find(cli.directory.path("device"))
  }

  /// The app's Documents at their current location.
  func documents() throws -> Directory {
    let prefix = ByteString("apps/\(Self.app)/data")
    guard let data = try device().containers.first(where: { $0.logicalPrefix == prefix }) else {
      throw Program.Failure(description: "the app has no data")
    }
    return try Directory.open(path: data.absolutePath.appending("Documents"))
  }

  /// Puts data for the app into the safe harbor.
  func fillHarbor() throws {
    let harbor = ByteString("device/.sandboxctl/safe-harbor/apps/\(Self.app)/data/Documents")
    try put("waits", harbor.appending("thesis.txt"))
    try put("too", harbor.appending("deep/er/note"))
  }

  /// Makes a copy of the device.
  func copy(to name: String) throws {
    let outcome = try Program.run("cp", ["-a", "device", name], in: cli.directory.url)
    guard outcome.code == 0 else { throw Program.Failure(description: outcome.errors) }
  }

  /// Replaces the device with an earlier copy.
  func reset(from name: String) throws {
    try cli.directory.directory.removeTree("device")
    let outcome = try Program.run("cp", ["-a", name, "device"], in: cli.directory.url)
    guard outcome.code == 0 else { throw Program.Failure(description: outcome.errors) }
  }
}

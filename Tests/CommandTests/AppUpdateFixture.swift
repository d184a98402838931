import Codecs
import DeviceDiscovery
import Foundation
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// The sample device in memory, a repository, and another version of one of its apps.
struct AppUpdateFixture {
  let cli: CommandLine
  static let app = "org.example.notebook"
  static let metadata: ByteString = ".com.apple.mobile_container_manager.metadata.plist"

  init() throws {
    cli = try CommandLine(inMemory: true)
    _ = try cli.succeed("sample device")
    _ = try cli.succeed("init repo --plain")
    try makePackage("New.app", version: "9.0", build: "999")
  }

  /// Makes a package of the installed app with another version.
  func makePackage(_ name: String, version: String, build: String) throws {
    let bundle = try #require(
      try cli.containers(of: "device").first { $0.path == "apps/org.example.notebook/bundle" })
    let source = bundle.realPath.appending("Notebook.app")
    _ = try Program.run("cp", ["-a", "\(source)", name], in: cli.directory.url)
    var plists: [ByteString] = [ByteString("\(name)/Info.plist")]
    for plugIn in try Directory.open(path: cli.directory.path(ByteString("\(name)/PlugIns")))
      .names()
    {
      plists.append(ByteString("\(name)/PlugIns").appending(plugIn).appending("Info.plist"))
    }
    for path in plists {
      let list = try PropertyList(reading: cli.directory.read(path))
      let members = (list.dictionaryValue ?? []).map { member in
        switch member.key {
        case "CFBundleVersion": PropertyList.Member(member.key, .string(build))
        case "CFBundleShortVersionString":
          PropertyList.Member(member.key, .string(version))
        default: member
        }
      }
      try cli.directory.write(PropertyList.dictionary(members).binary(), at: path)
    }
  }

  /// The device as this process sees it.
  func device() throws -> Device {
    try DeviceFinder(layout: .coreSimulator, machineID: "m", systemFlatpak: nil)
      .find(cli.directory.path("device"))
  }

  /// The entries below a container of the device, except the platform's own metadata.
  func records(_ container: Container) throws -> [ByteString: TreeRecord] {
    let inner = ByteString(container.absolutePath.bytes.dropFirst(cli.directory.path.count + 1))
    return try TreeRecord.all(in: cli.directory, inner).filter {
      $0.key != Self.metadata && !OwnNames.has($0.key.components.first ?? "")
    }
  }

  func records(_ path: ByteString) throws -> [ByteString: TreeRecord] {
    let container = try device().containers.first { $0.logicalPrefix == path }
    return try container.map { try records($0) } ?? [:]
  }

  /// The files of all containers of the device except bundles, by logical path, with their hashes.
  func data() throws -> [ByteString: Digest?] {
    var found: [ByteString: Digest?] = [:]
    for container in try device().containers where container.kind != .bundle {
      for (path, record) in try records(container) where record.kind == .file {
        found[container.logicalPrefix.appending(path)] = record.content
      }
    }
    return found
  }

  /// The version of the app on the device.
  func version() throws -> ByteString? {
    try device().apps.first { $0.identifier.bytes == ByteString(Self.app) }?.version
  }
}

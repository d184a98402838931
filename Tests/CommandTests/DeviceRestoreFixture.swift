import Codecs
import Foundation
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// The sample device, a backup of it, and other devices to restore to.
struct DeviceRestoreFixture {
  let cli: CommandLine
  static let notebook = "org.example.notebook"

  /// Makes the sample in `device` and backs it up to `repo`, with a policy or the device's own.
  init(policy: String? = nil, inMemory: Bool = true) throws {
    cli = try CommandLine(inMemory: inMemory)
    _ = try cli.succeed("sample device")
    _ = try Program.run("cp", ["-a", "device", "original"], in: cli.directory.url)
    _ = try cli.succeed("init repo --plain")
    let choice = policy.map { " --policy \($0)" } ?? ""
    _ = try cli.succeed("backup --root device --repo repo --quiet\(choice)")
  }

  /// Makes a device without apps.
  func makeEmptyDevice(_ name: String) throws {
    let list = try PropertyList.dictionary([
      .init("UDID", .string("11111111-2222-4333-8444-555555555555")),
      .init("name", .string("Other")),
      .init("runtime", .string("com.apple.CoreSimulator.SimRuntime.iOS-16-4")),
    ]).xml()
    try cli.directory.write(list, at: ByteString("\(name)/device.plist"))
    _ = try Directory.make(
      path: cli.directory.path(ByteString("\(name)/data/Containers/Data/Application")))
  }

  /// Returns the real path of a container of a device for its logical path.
  func path(_ container: ByteString, of device: String) throws -> ByteString {
    try #require(
      try cli.containers(of: device).first { $0.path == container }?.realPath, "\(container)")
  }

  /// Restores and returns the JSON output.
  @discardableResult
  func restore(_ arguments: String) throws -> [String: Any] {
    try cli.json("restore \(arguments) --repo repo --json")
  }

  /// Removes all containers of a device and keeps their parent directories.
  func removeContainers(of device: String) throws {
    for container in try cli.containers(of: device) {
      try Directory.open(path: container.realPath.directoryPath)
        .removeTree(container.realPath.lastComponent ?? "")
    }
  }

  func text(_ path: ByteString) throws -> String {
    String(decoding: try Descriptor.open(path: path).readAll(limit: 1 << 20) ?? [], as: UTF8.self)
  }

  func isThere(_ path: ByteString) -> Bool {
    (try? Directory.open(path: path.directoryPath).statusIfPresent(path.lastComponent ?? "")) ?? nil
      != nil
  }
}

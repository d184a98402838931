import BuiltinPolicies
import Codecs
import DeviceDiscovery
import PolicyEngine
import SandboxModel
import SystemIO

@testable import ArchiveStore
@testable import Restore

extension Target {
  /// The device record of a snapshot and the restore targets of its containers.
  static let deviceTargets = [Target(name: "device-record", run: deviceRecord)]

  /// A device record. Each container's target must be below the device's root, whatever names the
  /// record has.
  @Sendable private static func deviceRecord(_ bytes: [UInt8]) {
    guard let json = try? JSON(parsing: bytes),
      let record = try? DeviceRecord(JSONFields(json: json, object: "a device record"))
    else { return }
    for request in DeviceRecordRequests.all {
      let targets = ContainerTargets(request, of: Blake2b.hash(bytes), restored: [])
      for container in record.containers {
        guard let logical = try? LogicalPath(container.path).location?.container,
          let target = try? targets.target(of: container, logical)
        else { continue }
        let (path, root) = (target.path, request.device.root)
        require(
          !path.hasNUL && !path.components.contains { $0 == "." || $0 == ".." },
          "a target contains '.' or '..': \(path)")
        require(
          path.isWithin(root) || request.device.containerDirectories.contains { path.isWithin($0) },
          "a target lies outside the device: \(path)")
      }
    }
  }
}

/// Restores to an empty device of each layout, as another device and as the same.
private enum DeviceRecordRequests {
  /// Always the same directory, so that repeated runs leave only one.
  private static let directory: ByteString = "/tmp/sandboxctl-fuzz-devices"
  /// The layouts with the roots of their devices, and a directory that identifies the layout.
  private static let layouts: [(layout: Layout, root: ByteString, inner: ByteString)] = [
    (.coreSimulator, "simulator", "Containers/Data/Application"),
    (.macOS, "mac", "Library/Containers"), (.flatpak, "flatpak/.var/app", ""),
    (.snap, "snap/snap", ""), (.folder, "folder", ""), (.android, "android", "data/data"),
    (.xdg, "xdg", ".config"), (.systemd, "systemd", "etc/systemd/system"),
  ]

  /// Writes a unit file; a restore may only create the directories of this unit.
  private static func addUnit(to directory: ByteString) throws {
    let file = try Directory.open(path: directory).openOrCreate("web.service")
    try file.truncate(to: 0)
    try file.write(Array("[Service]\nStateDirectory=web web/inner\nLogsDirectory=web\n".utf8))
  }

  static let all: [DeviceRestoreRequest] = {
    let sources = BuiltinPolicies.files.map {
      PolicySource(name: $0.name, bytes: $0.bytes, origin: .builtin)
    }
    let library = PolicyLibrary(sources)
    return layouts.flatMap { layout, root, inner -> [DeviceRestoreRequest] in
      do {
        let root = directory.appending(root)
        _ = try Directory.make(path: root.appending(inner), permissions: 0o700)
        if layout == .systemd { try addUnit(to: root.appending(inner)) }
        let device = try Device.find(root: root, layout: layout)
        let policy = try library.compile(PolicyRequest(layout: layout))
        return [true, false].map { isInPlace in
          DeviceRestoreRequest(
            device, isInPlace: isInPlace, policy: policy,
            savingTo: Destination(isUnencrypted: true))
        }
      } catch {
        fatalError("no device in \(directory.appending(root)): \(error)")
      }
    }
  }()
}

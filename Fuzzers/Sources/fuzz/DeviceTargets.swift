import BuiltinPolicies
import Codecs
import PolicyEngine
import SandboxModel
import SystemIO

@testable import ArchiveStore
@testable import Lifecycle

extension Target {
  /// What a snapshot says of a device, and where a restore puts it.
  static let deviceTargets = [Target(name: "device-record", run: deviceRecord)]

  /// A device record: whatever it names, each container's place is below the device's root.
  @Sendable private static func deviceRecord(_ bytes: [UInt8]) {
    guard let json = try? JSON(parsing: bytes),
      let record = try? DeviceRecord(JSONFields(json: json, object: "a device record"))
    else { return }
    for request in DeviceRecordRequests.all {
      let targets = ContainerTargets(request, of: Blake2b.hash(bytes), restored: [])
      for container in record.containers {
        guard let logical = try? LogicalPath(container.path).place?.container,
          let target = try? targets.target(of: container, logical)
        else { continue }
        let (path, root) = (target.path, request.device.root)
        require(
          !path.hasNUL && !path.components.contains { $0 == "." || $0 == ".." },
          "a place leads elsewhere: \(path)")
        require(
          path.isWithin(root) || request.device.containerDirectories.contains { path.isWithin($0) },
          "a place lies outside of the device: \(path)")
      }
    }
  }
}

/// Restores into an empty device of each layout, on another device and on the same.
private enum DeviceRecordRequests {
  /// Always the same directory, so that runs leave no more than one.
  private static let directory: ByteString = "/tmp/sandboxctl-fuzz-devices"
  /// The layouts with the roots of their devices, and a directory that makes it one.
  private static let layouts: [(layout: Layout, root: ByteString, inner: ByteString)] = [
    (.coreSimulator, "simulator", "Containers/Data/Application"),
    (.macOS, "mac", "Library/Containers"), (.flatpak, "flatpak/.var/app", ""),
    (.snap, "snap/snap", ""), (.folder, "folder", ""),
  ]

  static let all: [DeviceRestoreRequest] = {
    let sources = BuiltinPolicies.files.map {
      PolicySource(name: $0.name, bytes: $0.bytes, origin: .builtin)
    }
    let library = PolicyLibrary(sources)
    return layouts.flatMap { layout, root, inner -> [DeviceRestoreRequest] in
      do {
        let root = directory.appending(root)
        _ = try Directory.make(path: root.appending(inner), permissions: 0o700)
        let device = try Device.find(root: root, layout: layout)
        let policy = try library.compile(PolicyRequest(layout: layout))
        return [true, false].map { DeviceRestoreRequest(device, isInPlace: $0, policy: policy) }
      } catch {
        fatalError("no device in \(directory.appending(root)): \(error)")
      }
    }
  }()
}

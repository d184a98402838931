internal import DeviceDiscovery
internal import SandboxModel
internal import SystemIO

/// The directories that the journals, notes and trash of a device may refer to: those that hold its
/// containers as discovered now, and its own `.sandboxctl`.
///
/// A device, and its journals, may come from an archive, a disk or another user. A recovery writes
/// with its own user's rights wherever the journal points, so only paths that this check permits
/// are touched (docs/journal.md, "What is trusted").
struct DeviceScope {
  private let directories: [ByteString]

  /// Creates the scope of a device. The device's root is a path without links and is used
  /// unchanged: a link that has replaced it since would lead to another home directory.
  ///
  /// - Parameters:
  ///   - includesHome: whether the home directory of a macOS or an XDG device, its root, is
  ///     permitted too. This is for a whole operation: an app's migration moves data from the home
  ///     into the container (App Sandbox Design Guide, Migrating an App to a Sandbox), and
  ///     `migrate` copies data into directories of the home that are no containers, such as
  ///     `.mozilla`.
  ///   - writer: the owner of the journal. If that is another user, whose journals root accepts, it
  ///     may refer to containers outside of the device's root, such as those in `/var/snap`, only
  ///     if they are that user's.
  init(_ device: Device, includesHome: Bool = false, writer: UInt32 = Host.userID) {
    let migrates = (device.layout == .macOS || device.layout == .xdg) && includesHome
    let containers = device.containerDirectories + device.containers.map(\.absolutePath)
    directories =
      [device.root.appending(OwnNames.directory)] + (migrates ? [device.root] : [])
      + containers.filter { path in
        writer == Host.userID || path.isWithin(device.root) || Self.belongs(path, to: writer)
      }
  }

  /// Whether the directory at a path belongs to a user, or does not exist.
  static func belongs(_ path: ByteString, to user: UInt32) -> Bool {
    do throws(SystemError) {
      return try Directory.open(resolved: path).status().user == user
    } catch { return error.isMissing }
  }

  /// Whether an operation may work in the directory at a path.
  func permits(_ path: ByteString) -> Bool {
    path.isAbsolute && !path.hasNUL && !path.components.contains { $0 == "." || $0 == ".." }
      && directories.contains { path.isWithin($0) }
  }

  /// Whether a path is in a trash of this program, on the device or on another volume of a
  /// container. Only there may directories for which the journal has no inode be created.
  func permitsMaking(_ path: ByteString) -> Bool {
    let parts = path.components
    return permits(path)
      && zip(parts, parts.dropFirst()).contains { own, name in
        own == OwnNames.directory && name == ControlDirectory.trash
      }
  }
}

internal import DeviceDiscovery
package import SandboxModel
package import SystemIO

/// The directories that the journals, notes and trash of a device may refer to: those that hold its
/// containers as discovered now, and its own `.sandboxctl`.
///
/// A device, and its journals, may come from an archive, a disk or another user. A recovery writes
/// with the rights of its own user wherever the journal points, so only paths that this check
/// permits are touched (docs/journal.md, "What is trusted").
package struct RecoveryScope {
  private let directories: [ByteString]

  /// Creates the scope of a device.
  ///
  /// - Parameter record: the operation to recover. For an operation on a whole macOS app the home
  ///   directory is permitted too, since the app's migration moves data from it into the container
  ///   (App Sandbox Design Guide, Migrating an App to a Sandbox).
  package init(_ device: Device, for record: JournalRecord? = nil) {
    let migrates = device.layout == .macOS && record?.isWhole == true
    directories =
      [device.root.appending(OwnNames.directory)] + device.containerDirectories
      + device.containers.map(\.absolutePath) + (migrates ? [Host.resolved(device.root)] : [])
  }

  /// Whether an operation may work in the directory at a path.
  package func permits(_ path: ByteString) -> Bool {
    path.isAbsolute && !path.hasNUL && !path.components.contains { $0 == "." || $0 == ".." }
      && directories.contains { path.isWithin($0) }
  }

  /// Whether a path is in a trash of this program, on the device or on another volume of a
  /// container. Only there may directories be created for which the journal has no inode.
  func permitsMaking(_ path: ByteString) -> Bool {
    let parts = path.components
    return permits(path)
      && zip(parts, parts.dropFirst()).contains { own, name in
        own == OwnNames.directory && name == ControlDirectory.trash
      }
  }

  /// Returns the first path of a journal that is not permitted, or nil if all are.
  func forbiddenPlace(in record: JournalRecord) -> ByteString? {
    let roots = record.roots.first { root in
      root.inode == nil ? !permitsMaking(root.path) : !permits(root.path)
    }
    return roots?.path ?? record.staging.first { !permits($0) }
  }
}

/// The trust in `.sandboxctl`, its directories and their files: each counts only if the user of the
/// program owns it (root also accepts the owner of the device's root), no other user can write to
/// it, and a file is a regular one with one name.
enum ControlTrust {
  /// Refuses a file or a directory that does not meet these conditions.
  ///
  /// - Parameter owner: the owner of the device's root, on whose device root may work.
  static func require(
    _ status: FileStatus, at path: ByteString, deviceOwner owner: UInt32
  ) throws(SystemError) {
    let isOwn = status.user == Host.userID || Host.userID == 0 && status.user == owner
    let hasOneName = status.kind == .directory || status.kind == .file && status.links == 1
    guard isOwn, hasOneName, status.permissions & 0o022 == 0 else {
      throw SystemError.untrusted(path)
    }
  }
}

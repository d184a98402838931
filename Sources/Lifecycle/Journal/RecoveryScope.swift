internal import SandboxModel
internal import SystemIO

/// The directories that the journals, notes and trash of a device may be about: those that hold its
/// containers as they are found now, and its own `.sandboxctl`.
///
/// A device may come from an archive, a disk or another user, and its journals with it. Whoever
/// carries one out writes with their own rights wherever it says: so only what this check permits is
/// touched (docs/journal.md, "What is trusted").
struct RecoveryScope {
  private let directories: [ByteString]

  /// - Parameter record: the operation that is to be recovered. Where it is about a whole macOS app,
  ///   the home is permitted, too: the app's migration moves data of the home into its container (App
  ///   Sandbox Design Guide, Migrating an App to a Sandbox).
  init(_ device: Device, for record: JournalRecord? = nil) {
    let migrates = device.layout == .macOS && record?.isWhole == true
    directories =
      [device.root.appending(OwnNames.directory)] + device.containerDirectories
      + device.containers.map(\.absolutePath) + (migrates ? [Host.resolved(device.root)] : [])
  }

  /// Whether an operation may work in the directory at a path.
  func permits(_ path: ByteString) -> Bool {
    path.isAbsolute && !path.hasNUL && !path.components.contains { $0 == "." || $0 == ".." }
      && directories.contains { path.isWithin($0) }
  }

  /// Whether it is in a trash of this program, in the device's own or that of a container on another
  /// volume: the only place in which directories are made that a journal has no inode of.
  func permitsMaking(_ path: ByteString) -> Bool {
    let parts = path.components
    return permits(path)
      && zip(parts, parts.dropFirst()).contains { own, name in
        own == OwnNames.directory && name == ControlDirectory.trash
      }
  }

  /// The first place that a journal names and may not.
  func forbiddenPlace(in record: JournalRecord) -> ByteString? {
    let roots = record.roots.first { root in
      root.inode == nil ? !permitsMaking(root.path) : !permits(root.path)
    }
    return roots?.path ?? record.staging.first { !permits($0) }
  }
}

/// Who may say what the program does on a device: what lies in `.sandboxctl` counts only if it belongs
/// to the user of the program, and nobody else may write to it.
enum ControlTrust {
  /// Refuses what belongs to somebody else.
  ///
  /// - Parameter owner: the owner of the device's root, whose own device root may work on.
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

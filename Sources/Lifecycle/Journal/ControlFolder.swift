internal import SandboxModel
internal import SystemIO

/// The program's own folder on a device, `.sandboxctl` at its root: the journal, the locks, the trash.
/// Only the device's user looks into it.
enum ControlFolder {
  static let journal: ByteString = "journal"
  static let locks: ByteString = "locks"
  static let trash: ByteString = "trash"

  static func path(_ name: ByteString, root: ByteString) -> ByteString {
    root.appending(OwnNames.folder).appending(name)
  }

  /// Opens one of its folders, making what is missing durable before anything relies on it.
  static func make(_ name: ByteString, root: ByteString) throws(SystemError) -> Folder {
    if let folder = try open(name, root: root) { return folder }
    let device = try Folder.open(path: root)
    let own = try device.makeFolder(OwnNames.folder, permissions: 0o700)
    let folder = try own.makeFolder(name, permissions: 0o700)
    try own.sync()
    try device.sync()
    return folder
  }

  /// Opens one of its folders; nothing where there is none. Nothing is made.
  static func open(_ name: ByteString, root: ByteString) throws(SystemError) -> Folder? {
    do throws(SystemError) {
      return try Folder.open(path: root).folder(OwnNames.folder).folder(name)
    } catch {
      if error.isMissing { return nil }
      throw error
    }
  }
}

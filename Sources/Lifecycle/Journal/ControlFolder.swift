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
    let device = try Folder.open(resolved: root)
    let own = try device.makeFolder(OwnNames.folder, permissions: 0o700)
    let folder = try own.makeFolder(name, permissions: 0o700)
    try ControlOwner.give(path(name, root: root))
    try own.sync()
    try device.sync()
    return folder
  }

  /// Opens one of its folders; nil if there is none. Nothing is made.
  ///
  /// - Throws: `untrusted` if it is not the user's own.
  static func open(_ name: ByteString, root: ByteString) throws(SystemError) -> Folder? {
    do throws(SystemError) {
      let device = try Folder.open(resolved: root)
      let owner = try device.status().user
      let own = try openOwn(in: device, of: owner)
      try ControlTrust.require(own.status(), at: own.path, deviceOwner: owner)
      let folder = try own.folder(name)
      try ControlTrust.require(folder.status(), at: folder.path, deviceOwner: owner)
      return folder
    } catch {
      if error.isMissing { return nil }
      throw error
    }
  }

  /// Opens `.sandboxctl` itself.
  ///
  /// - Throws: `taken` where it is closed to this user, whose device it is.
  private static func openOwn(
    in device: borrowing Folder, of owner: UInt32
  ) throws(SystemError) -> Folder {
    do throws(SystemError) {
      return try device.folder(OwnNames.folder)
    } catch {
      let status = error.isRefused ? try? device.status(OwnNames.folder) : nil
      guard let status, status.user != owner else { throw error }
      throw SystemError.taken(device.path.appending(OwnNames.folder))
    }
  }

  /// Reads one of the program's files in such a folder; nil if there is none.
  ///
  /// - Throws: `untrusted` if it is not the user's own.
  static func read(
    _ name: ByteString, in folder: borrowing Folder, limit: Int
  ) throws(SystemError) -> [UInt8]? {
    try file(name, in: folder)?.readAll(limit: limit) ?? nil
  }

  /// Opens one of the program's files in such a folder; nil if there is none.
  ///
  /// - Throws: `untrusted` if it is not the user's own.
  static func file(
    _ name: ByteString, in folder: borrowing Folder
  ) throws(SystemError) -> Descriptor? {
    do throws(SystemError) {
      let file = try folder.file(name)
      let path = folder.path.appending(name)
      try ControlTrust.require(file.status(), at: path, deviceOwner: folder.status().user)
      return file
    } catch {
      if error.isMissing { return nil }
      throw error
    }
  }
}

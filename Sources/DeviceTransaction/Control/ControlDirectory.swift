internal import SandboxModel
package import SystemIO

/// The program's own directory on a device, `.sandboxctl` at its root: journal, locks and trash.
/// Only the device's user can read it. Its directories belong to the owner of the directory that
/// contains them, even if root creates them.
package enum ControlDirectory {
  static let journal: ByteString = "journal"
  static let locks: ByteString = "locks"
  static let trash: ByteString = "trash"
  /// The notes about files that were delivered into inboxes of apps.
  package static let inbox: ByteString = "inbox"

  static func path(_ name: ByteString, root: ByteString) -> ByteString {
    root.appending(OwnNames.directory).appending(name)
  }

  /// Opens one of its subdirectories. Missing directories are created and synced before use.
  ///
  /// - Throws: `untrusted` if it does not meet the conditions of `requireTrusted`, even if another
  ///   user created it at that moment.
  package static func make(_ name: ByteString, root: ByteString) throws(SystemError) -> Directory {
    if let directory = try open(name, root: root) { return directory }
    let device = try Directory.open(resolved: root)
    let own = try device.makeInherited(OwnNames.directory)
    let directory = try own.makeInherited(name)
    let owner = try device.status().user
    try requireTrusted(own.status(), at: own.path, deviceOwner: owner)
    try requireTrusted(directory.status(), at: directory.path, deviceOwner: owner)
    try own.sync()
    try device.sync()
    return directory
  }

  /// Opens one of its subdirectories, or returns nil if it does not exist. Creates nothing.
  ///
  /// - Throws: `untrusted` if it does not meet the conditions of `requireTrusted`.
  package static func open(_ name: ByteString, root: ByteString) throws(SystemError) -> Directory? {
    do throws(SystemError) {
      let device = try Directory.open(resolved: root)
      let owner = try device.status().user
      let own = try openOwn(in: device, of: owner)
      try requireTrusted(own.status(), at: own.path, deviceOwner: owner)
      let directory = try own.directory(name)
      try requireTrusted(directory.status(), at: directory.path, deviceOwner: owner)
      return directory
    } catch {
      if error.isMissing { return nil }
      throw error
    }
  }

  /// Opens `.sandboxctl` itself.
  ///
  /// - Throws: `foreignOwner` if access is denied and it does not belong to `owner`, the device's
  ///   owner.
  private static func openOwn(
    in device: borrowing Directory, of owner: UInt32
  ) throws(SystemError) -> Directory {
    do throws(SystemError) {
      return try device.directory(OwnNames.directory)
    } catch {
      let status = error.isRefused ? try? device.status(OwnNames.directory) : nil
      guard let status, status.user != owner else { throw error }
      throw SystemError.foreignOwner(device.path.appending(OwnNames.directory))
    }
  }

  /// Reads a file of the program in such a directory, or returns nil if it does not exist.
  ///
  /// - Throws: `untrusted` if it does not meet the conditions of `requireTrusted`.
  package static func read(
    _ name: ByteString, in directory: borrowing Directory, limit: Int
  ) throws(SystemError) -> [UInt8]? {
    try file(name, in: directory)?.readAll(limit: limit) ?? nil
  }

  /// Opens a file of the program in such a directory, or returns nil if it does not exist.
  ///
  /// - Throws: `untrusted` if it does not meet the conditions of `requireTrusted`.
  static func file(
    _ name: ByteString, in directory: borrowing Directory
  ) throws(SystemError) -> Descriptor? {
    do throws(SystemError) {
      let file = try directory.file(name)
      let path = directory.path.appending(name)
      try requireTrusted(file.status(), at: path, deviceOwner: directory.status().user)
      return file
    } catch {
      if error.isMissing { return nil }
      throw error
    }
  }

  /// Refuses a file or a directory that is not trusted. `.sandboxctl`, its directories and their
  /// files count only if the user of the program owns them (root also accepts the owner of the
  /// device's root), no other user can write to them, and a file is a regular one with one name.
  ///
  /// - Parameter owner: the owner of the device's root, on whose device root may work.
  private static func requireTrusted(
    _ status: FileStatus, at path: ByteString, deviceOwner owner: UInt32
  ) throws(SystemError) {
    let isOwn = status.user == Host.userID || Host.userID == 0 && status.user == owner
    let hasOneName = status.kind == .directory || status.kind == .file && status.links == 1
    guard isOwn, hasOneName, status.permissions & 0o022 == 0 else {
      throw SystemError.untrusted(path)
    }
  }
}

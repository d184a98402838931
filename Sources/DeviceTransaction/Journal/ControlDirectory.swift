internal import SandboxModel
package import SystemIO

/// The program's own directory on a device, `.sandboxctl` at its root: journal, locks and trash.
/// Only the device's user can read it.
package enum ControlDirectory {
  package static let journal: ByteString = "journal"
  static let locks: ByteString = "locks"
  static let trash: ByteString = "trash"

  static func path(_ name: ByteString, root: ByteString) -> ByteString {
    root.appending(OwnNames.directory).appending(name)
  }

  /// Opens one of its subdirectories. Missing directories are created and synced before use.
  package static func make(_ name: ByteString, root: ByteString) throws(SystemError) -> Directory {
    if let directory = try open(name, root: root) { return directory }
    let device = try Directory.open(resolved: root)
    let own = try device.makeDirectory(OwnNames.directory, permissions: 0o700)
    let directory = try own.makeDirectory(name, permissions: 0o700)
    try ControlOwner.give(path(name, root: root))
    try own.sync()
    try device.sync()
    return directory
  }

  /// Opens one of its subdirectories, or returns nil if it does not exist. Creates nothing.
  ///
  /// - Throws: `untrusted` if it does not meet the conditions of `ControlTrust`.
  static func open(_ name: ByteString, root: ByteString) throws(SystemError) -> Directory? {
    do throws(SystemError) {
      let device = try Directory.open(resolved: root)
      let owner = try device.status().user
      let own = try openOwn(in: device, of: owner)
      try ControlTrust.require(own.status(), at: own.path, deviceOwner: owner)
      let directory = try own.directory(name)
      try ControlTrust.require(directory.status(), at: directory.path, deviceOwner: owner)
      return directory
    } catch {
      if error.isMissing { return nil }
      throw error
    }
  }

  /// Opens `.sandboxctl` itself.
  ///
  /// - Throws: `taken` if access is denied and it does not belong to `owner`, the device's owner.
  private static func openOwn(
    in device: borrowing Directory, of owner: UInt32
  ) throws(SystemError) -> Directory {
    do throws(SystemError) {
      return try device.directory(OwnNames.directory)
    } catch {
      let status = error.isRefused ? try? device.status(OwnNames.directory) : nil
      guard let status, status.user != owner else { throw error }
      throw SystemError.taken(device.path.appending(OwnNames.directory))
    }
  }

  /// Reads a file of the program in such a directory, or returns nil if it does not exist.
  ///
  /// - Throws: `untrusted` if it does not meet the conditions of `ControlTrust`.
  static func read(
    _ name: ByteString, in directory: borrowing Directory, limit: Int
  ) throws(SystemError) -> [UInt8]? {
    try file(name, in: directory)?.readAll(limit: limit) ?? nil
  }

  /// Opens a file of the program in such a directory, or returns nil if it does not exist.
  ///
  /// - Throws: `untrusted` if it does not meet the conditions of `ControlTrust`.
  static func file(
    _ name: ByteString, in directory: borrowing Directory
  ) throws(SystemError) -> Descriptor? {
    do throws(SystemError) {
      let file = try directory.file(name)
      let path = directory.path.appending(name)
      try ControlTrust.require(file.status(), at: path, deviceOwner: directory.status().user)
      return file
    } catch {
      if error.isMissing { return nil }
      throw error
    }
  }
}

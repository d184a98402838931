package import SystemIO

/// A home directory for the time of a migration, with the data of apps from a snapshot. It is in
/// the directory of the variable TMPDIR (default: `/var/tmp`), and only this user can read it.
package struct TemporaryHome {
  /// The side of the migration that it is.
  package let side: AppPairing.Side
  private let parent: ByteString
  private let name: ByteString

  /// Creates the home directory for apps of a form.
  ///
  /// - Throws: `failed` if it cannot be created.
  package init(for form: Packaging) throws(OperationError) {
    do throws(SystemError) {
      parent = try Host.realPath(Host.environment("TMPDIR") ?? "/var/tmp")
      name = ByteString("sandboxctl-migrate-\(Host.randomHex(bytes: 8))")
      try Directory.open(path: parent).createDirectory(name, permissions: 0o700)
      // The directory that makes it a device.
      _ = try Directory.make(
        path: parent.appending(name).appending(form.deviceDirectory ?? ".config"),
        permissions: 0o700)
    } catch { throw OperationError(error) }
    side = AppPairing.Side(form, home: parent.appending(name))
  }

  /// Removes the directory with everything in it.
  package func remove() throws(SystemError) { try Directory.open(path: parent).removeTree(name) }
}

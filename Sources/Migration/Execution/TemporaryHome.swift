package import SystemIO

/// A temporary home directory for a migration, with the data of apps from a snapshot. It is in the
/// directory of the variable TMPDIR (default: `/var/tmp`), and only this user can read it.
///
/// It is locked while its process lives. The directories of killed processes contain data of apps
/// that the repository may hold encrypted; the next migration from a snapshot removes them.
package struct TemporaryHome {
  /// The side of the migration that it represents.
  package let side: AppPairing.Side
  private let parent: ByteString
  private let name: ByteString
  private let lock: Lock

  /// The lock on the directory; nil if the file system does not support locks.
  private final class Lock: Sendable {
    private let lock: FileLock?

    init(_ directory: borrowing Directory) { lock = try? FileLock(directory) }
  }

  private static let temporaryNames = RandomName(prefix: "sandboxctl-migrate-")
  /// The minimum age in seconds of an abandoned directory without a lock: a new one is locked by
  /// then.
  private static let leastAge = 60.0

  /// Creates the home directory for apps of a form, and removes abandoned ones.
  ///
  /// - Throws: `failed` if it cannot be created.
  package init(for form: Packaging) throws(OperationError) {
    do throws(SystemError) {
      parent = try Host.realPath(Host.environment("TMPDIR") ?? "/var/tmp")
      let above = try Directory.open(path: parent)
      Self.removeAbandoned(in: above)
      name = Self.temporaryNames.make()
      try above.createDirectory(name, permissions: 0o700)
      lock = Lock(try above.directory(name))
      // The directory that makes it a device.
      _ = try Directory.make(
        path: parent.appending(name).appending(form.deviceDirectory ?? ".config"),
        permissions: 0o700)
    } catch { throw OperationError(error) }
    side = AppPairing.Side(form, home: parent.appending(name))
  }

  /// Removes the directory with everything in it.
  package func remove() throws(SystemError) {
    defer { withExtendedLifetime(lock) {} }
    try Self.remove(name, in: Directory.open(path: parent))
  }

  /// Removes the directories of killed processes of this user. One that cannot be removed stays.
  private static func removeAbandoned(in parent: borrowing Directory) {
    for name in (try? parent.names()) ?? [] where temporaryNames.matches(name) {
      guard let status = try? parent.statusIfPresent(name), status.kind == .directory,
        status.user == Host.userID, Host.now().since(status.modified) > leastAge,
        let directory = try? parent.directory(name), let lock = try? FileLock(directory)
      else { continue }
      try? remove(name, in: parent)
      _ = consume lock
    }
  }

  /// Removes a directory. The modes of restored directories may not permit that.
  private static func remove(
    _ name: ByteString, in parent: borrowing Directory
  ) throws(SystemError) {
    _ = try parent.removeTree(name, watch: RemovalWatch(makesWritable: true))
  }
}

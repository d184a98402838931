public import SystemIO

/// The lock of a mirror: one program at a time mirrors to it.
public enum MirrorLock: Sendable, Hashable {
  /// The mirror's directory on this host.
  case directory(ByteString)
  /// A file of this host, for a mirror on another one. Its directory is created if it is missing.
  case file(ByteString, in: ByteString)

  /// Takes the lock. Returns nil if the file system has no locks: the mirror is then used without.
  ///
  /// - Parameter location: the location of the mirror, for the error.
  /// - Throws: the code `busy` if another program holds it.
  func take(at location: String) throws(StoreError) -> FileLock? {
    do throws(SystemError) {
      switch self {
      case .directory(let path): return try FileLock(Directory.open(path: path))
      case .file(let name, let directory):
        return try FileLock(name, in: Directory.make(path: directory, permissions: 0o700))
      }
    } catch {
      guard error.isBusy else { return nil }
      throw StoreError(
        .busy, "mirror the repository to", subject: location,
        reason: "another program is mirroring to it", hint: "try again after it has finished")
    }
  }
}

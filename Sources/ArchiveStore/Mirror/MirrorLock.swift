public import SystemIO

/// The lock of a mirror: one program at a time mirrors to it.
///
/// It is a file of this user that records the process that holds it; for a mirror on this host the
/// directory is locked as well, because other users have files of their own.
public struct MirrorLock: Sendable, Hashable {
  private let file: ByteString?
  private let directory: ByteString?

  /// Creates the description of a lock.
  ///
  /// - Parameters:
  ///   - file: the path of the file; its directory is created if it is missing.
  ///   - directory: the mirror's directory; nil for a mirror on another host.
  public init(file: ByteString?, directory: ByteString?) {
    (self.file, self.directory) = (file, directory)
  }

  /// The locks that are held as long as this value lives, as far as the file systems support them.
  struct HeldLocks: ~Copyable {
    fileprivate let file: FileLock?
    fileprivate let directory: FileLock?
  }

  /// Takes the lock. If the file system does not support locks, the mirror is used without one.
  ///
  /// - Parameter location: the location of the mirror, for the error.
  /// - Throws: the code `busy` if another program holds it.
  func take(at location: String) throws(StoreError) -> HeldLocks {
    HeldLocks(file: try takeFile(location), directory: try takeDirectory(location))
  }

  private func takeFile(_ location: String) throws(StoreError) -> FileLock? {
    guard let file, let name = file.lastComponent,
      let parent = try? Directory.make(path: file.parent, permissions: 0o700)
    else { return nil }
    do throws(SystemError) { return try FileLock(name, in: parent) } catch {
      guard error.isBusy else { return nil }
      throw Self.busy(location, LockHolder.words(of: name, in: parent))
    }
  }

  private func takeDirectory(_ location: String) throws(StoreError) -> FileLock? {
    guard let directory else { return nil }
    do throws(SystemError) { return try FileLock(Directory.open(path: directory)) } catch {
      guard error.isBusy else { return nil }
      throw Self.busy(location, "")
    }
  }

  private static func busy(_ location: String, _ holder: String) -> StoreError {
    StoreError(
      .busy, "mirror the repository to", subject: location,
      reason: "another program is mirroring to it" + holder,
      hint: "try again after it has finished")
  }
}

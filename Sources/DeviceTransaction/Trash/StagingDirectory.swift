internal import Synchronization
package import SystemIO

/// The directory in which a restore creates all entries before any is put in place. It is in the
/// directory that the restore works in, so on the same file system, and no other user can access
/// it.
///
/// It is locked while its run lives. The directory of a killed run is recognized by its name and
/// its free lock, and is removed by the next run in the same directory. Only the run that creates a
/// directory creates its lock, before anything else, and the lock is removed last. So one without a
/// lock is empty, and another run removes it only as an empty directory: it is either abandoned or
/// one whose run then creates another.
package struct StagingDirectory: ~Copyable {
  private let parent: Directory
  /// Its name in the directory that the operation works in.
  package let name: ByteString
  private let identity: FileIdentity
  private let lock: Mutex<FileLock?>
  /// The directory of the staged entries, which have their final names.
  package let tree: Directory
  /// The status of a new file in it: its owner, and the permissions that the umask allows.
  package let fresh: FileStatus

  private static let prefix = Array(".sandboxctl-restore-".utf8)
  /// Each attempt fails if another run looks for abandoned directories between two system calls.
  private static let attempts = 32

  /// The number of its own files and directories: itself, the lock and the directory of the
  /// entries.
  package static let entries: UInt64 = 3

  /// Whether there is a staging directory, of this run or another.
  package static func isAny(in parent: borrowing Directory) -> Bool {
    (try? parent.names().contains { isAny($0) }) ?? false
  }

  /// Whether a name is that of a staging directory.
  package static func isAny(_ name: ByteString) -> Bool { name.bytes.starts(with: prefix) }

  /// Whether a name is that of a staging directory for some work.
  static func isAny(_ name: ByteString, for work: StagedWork) -> Bool {
    name.bytes.starts(with: prefix + work.tag)
  }

  /// Creates a staging directory after removing abandoned ones, except those that are needed.
  ///
  /// - Parameter work: the part of the directory that the run changes, for `ActiveStaging`.
  package static func make(
    in parent: borrowing Directory, keeping needed: NeededStaging = NeededStaging(),
    for work: StagedWork = .locked
  ) throws(SystemError) -> StagingDirectory {
    try? removeAbandoned(in: parent, keeping: needed)
    for attempt in 0..<attempts {
      if attempt > 0 {
        Host.pause(seconds: Double(attempt) / 1000)
        try? removeAbandoned(in: parent, keeping: needed)
      }
      let name = ByteString(prefix + work.tag + Array(Host.randomHex(bytes: 8).utf8))
      try parent.createDirectory(name, permissions: 0o700)
      var made: FileIdentity?
      do throws(SystemError) {
        made = try Self.identity(ofNew: name, in: parent)
        // Without a lock, another process considered the directory abandoned before it could be
        // locked.
        guard let made, let lock = try lock(name, in: parent) else { continue }
        return try StagingDirectory(in: parent.duplicate(), named: name, identity: made, lock: lock)
      } catch {
        // At the limit of open files it cannot be opened, but then it is empty.
        let isRemoved = made.map { (try? discard(name, in: parent, $0)) != nil } ?? false
        if !isRemoved { try? parent.removeDirectory(name) }
        throw error
      }
    }
    throw SystemError.replaced(parent.path)
  }

  /// Returns the identity of a directory that was just created, or nil if another run has removed
  /// it.
  ///
  /// - Throws: ESTALE if it has entries: another user put another directory there.
  private static func identity(
    ofNew name: ByteString, in parent: borrowing Directory
  ) throws(SystemError) -> FileIdentity? {
    do throws(SystemError) {
      let directory = try parent.directory(name)
      let identity = try directory.status().identity
      guard try directory.readNames().isEmpty else {
        throw SystemError.replaced(parent.path.appending(name))
      }
      return identity
    } catch {
      if error.isMissing { return nil }
      throw error
    }
  }

  /// Opens a directory by its name. Its parent may belong to another user, who can have put another
  /// directory there, for example one of root (ESTALE).
  private static func opened(
    _ name: ByteString, in parent: borrowing Directory, _ identity: FileIdentity
  ) throws(SystemError) -> Directory {
    let directory = try parent.directory(name)
    guard try directory.status().identity == identity else {
      throw SystemError.replaced(parent.path.appending(name))
    }
    return directory
  }

  private init(
    in parent: consuming Directory, named name: ByteString, identity: FileIdentity,
    lock: consuming FileLock
  ) throws(SystemError) {
    let directory = try Self.opened(name, in: parent, identity)
    try Self.close(directory)
    let fresh = try Self.probe(directory)
    // The app's user could replace staged entries before they get their owner and mode.
    try directory.requireOwn()
    try directory.createDirectory("tree", permissions: 0o700)
    let tree = try directory.directory("tree")
    try tree.requireOwn()
    self.fresh = fresh
    self.tree = tree
    self.name = name
    self.identity = identity
    self.lock = Mutex(lock)
    self.parent = parent
  }

  /// Removes the directory with its contents.
  ///
  /// NFS and most FUSE file systems keep a removed file that is open under a hidden name in its
  /// directory, which can be removed only once the file is closed: here the lock, which by then
  /// excludes no process.
  package borrowing func remove() throws(SystemError) {
    do throws(SystemError) {
      try Self.discard(name, in: parent, identity)
    } catch {
      guard error.isExisting, try Self.isUnlocked(name, in: parent) else { throw error }
      lock.withLock { $0 = nil }
      try Self.removeClosed(name, in: parent)
    }
  }

  private static func isUnlocked(
    _ name: ByteString, in parent: borrowing Directory
  ) throws(SystemError) -> Bool {
    try parent.directory(name).statusIfPresent(lockName) == nil
  }

  /// The number of attempts to remove a directory whose files are being closed: FUSE closes them
  /// later.
  private static let closings = 20

  /// Removes a directory without a lock. If it still has a hidden file at the end, it is left for
  /// the next run: all entries are in place.
  private static func removeClosed(
    _ name: ByteString, in parent: borrowing Directory
  ) throws(SystemError) {
    for attempt in 0..<closings {
      do throws(SystemError) {
        return try unlessMissing { () throws(SystemError) in try parent.removeDirectory(name) }
      } catch {
        guard error.isExisting else { throw error }
        Host.pause(seconds: Double(attempt) / 500)
      }
    }
  }

  /// Removes a locked directory: the lock last, so that a run that is killed meanwhile leaves an
  /// abandoned directory. The directory without the lock may be removed by another run.
  private static func discard(
    _ name: ByteString, in parent: borrowing Directory, _ identity: FileIdentity
  ) throws(SystemError) {
    // Each call opens the directory again, so that few descriptors are open at once: the limit of
    // open files may be the reason for the removal.
    let watch = RemovalWatch(makesWritable: true)
    for child in try opened(name, in: parent, identity).readNames() where child != lockName {
      _ = try opened(name, in: parent, identity).removeTreeAndClose(child, watch: watch)
    }
    try unlessMissing { () throws(SystemError) in
      try opened(name, in: parent, identity).remove(lockName)
    }
    try unlessMissing { () throws(SystemError) in try parent.removeDirectory(name) }
  }

  private static func unlessMissing(
    _ body: () throws(SystemError) -> Void
  ) throws(SystemError) {
    do throws(SystemError) { try body() } catch { if !error.isMissing { throw error } }
  }

  static let lockName: ByteString = "lock"

  /// Acquires the lock of a new staging directory; nil if another process holds it or removes the
  /// directory.
  private static func lock(
    _ name: ByteString, in parent: borrowing Directory
  ) throws(SystemError) -> FileLock? {
    do throws(SystemError) {
      let directory = try parent.directory(name)
      let lock = try FileLock(lockName, in: directory)
      if try directory.statusIfPresent(lockName) == nil { return nil }
      return lock
    } catch {
      if error.isBusy || error.isMissing { return nil }
      throw error
    }
  }

  /// Removes inherited properties that new files would inherit in turn: an ACL, a group, and flags.
  ///
  /// A file system without owners (exFAT, NTFS), or one that assigns them, refuses the group. It
  /// may refuse the mode as well, of a directory that belongs to another user from the beginning.
  private static func close(_ directory: borrowing Directory) throws(SystemError) {
    for name in try directory.attributes.names() where name.isAccessList {
      try directory.attributes.remove(name)
    }
    do throws(SystemError) {
      try directory.setOwner(user: .max, group: Host.groupID)
    } catch { guard error.isRefused || error.isUnsupported else { throw error } }
    do throws(SystemError) {
      try directory.setPermissions(0o700)
    } catch {
      let isForeign = try directory.status().user != Host.userID
      guard error.isUnsupported || error.isRefused && isForeign else { throw error }
    }
    try? directory.clearFlags()
  }

  private static func probe(_ directory: borrowing Directory) throws(SystemError) -> FileStatus {
    let status = try directory.create("probe", permissions: 0o777).status()
    try directory.remove("probe")
    return status
  }

  /// Moves the directory to the trash, with the entries that a rollback returned to it.
  package borrowing func preserve(in trash: TrashDirectory) throws(SystemError) {
    try trash.preserve(name, of: parent, at: [], leaving: true, as: Self.keptName)
  }

  private static let keptName: ByteString = "staged"

  /// Removes abandoned staging directories, as far as possible, except those that are needed.
  ///
  /// - Throws: The first error.
  package static func removeAbandoned(
    in parent: borrowing Directory, keeping needed: NeededStaging = NeededStaging()
  ) throws(SystemError) {
    try forEachAbandoned(in: parent, keeping: needed) { name, directory throws(SystemError) in
      try discard(name, in: parent, directory.status().identity)
    }
  }

  /// Moves abandoned staging directories, except those that are needed, to a trash, which
  /// `makeTrash` creates when it is needed.
  static func preserveAbandoned(
    in parent: borrowing Directory, keeping needed: NeededStaging,
    _ makeTrash: (borrowing Directory) throws(SystemError) -> TrashDirectory
  ) throws(SystemError) {
    try forEachAbandoned(in: parent, keeping: needed) { name, directory throws(SystemError) in
      try makeTrash(directory).preserve(name, of: parent, at: [], leaving: true, as: keptName)
    }
  }

  private static func forEachAbandoned(
    in parent: borrowing Directory, keeping needed: NeededStaging,
    _ body: (ByteString, borrowing Directory) throws(SystemError) -> Void
  ) throws(SystemError) {
    var failure: SystemError?
    for name in try parent.names()
    where name.bytes.starts(with: prefix) && !needed.includes(name, in: parent.path) {
      var isAbandoned = false
      do throws(SystemError) {
        let directory = try parent.directory(name)
        guard try directory.statusIfPresent(lockName) != nil else {
          try? parent.removeDirectory(name)
          continue
        }
        let lock = try FileLock(existing: lockName, in: directory)
        isAbandoned = true
        try body(name, directory)
        withExtendedLifetime(lock) {}
      } catch {
        // A directory that another process uses, or that another user owns, is skipped.
        if !isAbandoned, error.isBusy || error.isMissing || error.isRefused { continue }
        failure = failure ?? error
      }
    }
    if let failure { throw failure }
  }
}

extension ByteString {
  /// Whether it is the name of an extended attribute with a POSIX ACL (`acl(5)`).
  package var isAccessList: Bool {
    self == "system.posix_acl_access" || self == "system.posix_acl_default"
  }
}

internal import CLinux
internal import Glibc

/// A file that is written atomically: it is created under a temporary name, synced and renamed, and
/// the directory is synced. Without `commit()` the temporary file is removed.
public struct AtomicFile: ~Copyable {
  private let directory: Directory
  private let temporary: ByteString
  private let file: Descriptor
  private var isDone = false

  private static let prefix = ".sandboxctl-"
  private static let suffix = ".tmp"

  /// Whether a name is that of a temporary file, which a killed process may have left behind.
  public static func isTemporary(_ name: ByteString) -> Bool {
    guard let text = name.utf8 else { return false }
    return text.hasPrefix(prefix) && text.hasSuffix(suffix)
  }

  /// Creates the file in `directory` under a unique temporary name.
  public init(in directory: borrowing Directory, permissions: UInt16 = 0o666) throws(SystemError) {
    let name = Self.temporaryName()
    let parent = try directory.duplicate()
    let created = try parent.create(name, permissions: permissions)
    self.directory = parent
    temporary = name
    file = created
  }

  /// Creates the file in a directory of the user's, and locks it while it is written, so that
  /// `removeAbandoned` distinguishes it from one that a killed process left behind. If the file
  /// system has no locks, it is created without one and is never considered abandoned.
  public init(
    lockedIn directory: borrowing Directory, permissions: UInt16 = 0o666
  ) throws(SystemError) {
    let parent = try directory.duplicate()
    for _ in 0..<Self.attempts {
      let name = Self.temporaryName(Self.lockedMark)
      let created = try parent.create(name, permissions: permissions)
      // Before it is locked, another process can mistake it for abandoned.
      guard try created.lock() != .elsewhere, try parent.statusIfPresent(name) != nil else {
        try? parent.remove(name)
        continue
      }
      self.directory = parent
      temporary = name
      file = created
      return
    }
    throw SystemError(.lock, directory.path, number: EWOULDBLOCK)
  }

  /// The maximum number of files that are created until one is locked.
  private static let attempts = 100

  /// Returns a unique temporary name.
  ///
  /// - Parameter mark: The text before its random part.
  static func temporaryName(_ mark: String = "") -> ByteString {
    temporaryNames(mark).make()
  }

  private static func temporaryNames(_ mark: String) -> RandomName {
    RandomName(prefix: prefix + mark, suffix: suffix)
  }

  /// The mark in the names of files that are locked while they are written.
  private static let lockedMark = "output-"

  deinit {
    if !isDone { try? directory.remove(temporary) }
  }

  /// Appends bytes.
  public func write(_ bytes: borrowing [UInt8]) throws(SystemError) { try file.write(bytes) }

  /// Appends the bytes of a span.
  public func write(_ bytes: Span<UInt8>) throws(SystemError) { try file.write(bytes) }

  /// Sets the permission bits, whatever the umask is.
  public func setPermissions(_ bits: UInt16) throws(SystemError) { try file.setPermissions(bits) }

  /// Changes the owner of a file that root writes to the owner of the directory.
  public func inheritOwner() throws(SystemError) {
    guard Host.userID == 0 else { return }
    let owner = try directory.status()
    if owner.user != 0 { try file.setOwner(user: owner.user, group: owner.group) }
  }

  /// Syncs the content, renames the file to its final name and syncs the directory. If `replacing`
  /// is false, an existing file is an error. If `durably` is false, nothing is synced: after a
  /// system crash the file may exist with arbitrary content.
  public consuming func commit(
    as name: ByteString, replacing: Bool = true, durably: Bool = true
  ) throws(SystemError) {
    if durably { try file.sync() }
    if replacing {
      try directory.rename(temporary, to: name, in: directory)
    } else {
      try directory.renameWithoutReplacing(temporary, to: name, in: directory)
    }
    isDone = true
    if durably { try directory.sync() }
  }

  /// Writes a whole small file at once.
  public static func write(
    _ bytes: borrowing [UInt8], as name: ByteString, in directory: borrowing Directory,
    permissions: UInt16 = 0o666, replacing: Bool = true
  ) throws(SystemError) {
    let file = try AtomicFile(in: directory, permissions: permissions)
    try file.write(bytes)
    try file.commit(as: name, replacing: replacing)
  }
}

extension Directory {
  /// Renames a child to a name in a directory that must not exist, also on a file system, such as
  /// NFS, and in a sandbox without a rename that refuses to replace. There an entry that another
  /// program makes at the same moment is replaced.
  public func renameWithoutReplacing(
    _ name: ByteString, to newName: ByteString, in directory: borrowing Directory
  ) throws(SystemError) {
    do throws(SystemError) {
      try rename(name, to: newName, in: directory, replacing: false)
    } catch {
      guard error.isUnsupported else { throw error }
      guard try directory.statusIfPresent(newName) == nil else {
        throw SystemError(.rename, path.appending(name), number: EEXIST)
      }
      try rename(name, to: newName, in: directory)
    }
  }
}

// MARK: - Abandoned files

extension AtomicFile {
  /// Removes the locked temporary files of killed processes from a directory. Files that a process
  /// has locked, have other names or belong to other users, and other entries are not touched.
  ///
  /// An entry that cannot be listed, opened or removed stays: it only takes space.
  public static func removeAbandoned(in directory: borrowing Directory) {
    var names: [ByteString] = []
    try? directory.forEachName { bytes in
      let name = ByteString(bytes)
      if isLockable(name) { names.append(name) }
    }
    for name in names { _ = try? removeIfAbandoned(name, in: directory) }
  }

  /// Removes a temporary file unless a process has locked it. Returns whether it was removed.
  @discardableResult public static func removeIfAbandoned(
    _ name: ByteString, in directory: borrowing Directory
  ) throws(SystemError) -> Bool {
    guard isTemporary(name), try isOwn(directory.statusIfPresent(name)) else { return false }
    let file = try directory.fileForWriting(name)
    guard isOwn(try file.status()), try file.lock() == .held else { return false }
    // A process may have given it its final name in the meantime.
    guard try directory.statusIfPresent(name)?.identity == file.status().identity else {
      return false
    }
    try directory.remove(name)
    return true
  }

  /// Whether a name is that of a temporary file that is locked while it is written.
  private static func isLockable(_ name: ByteString) -> Bool {
    temporaryNames(lockedMark).matches(name)
  }

  /// Whether a status is that of a file with one name that this user owns.
  private static func isOwn(_ status: FileStatus?) -> Bool {
    status?.kind == .file && status?.links == 1 && status?.user == Host.userID
  }
}

extension Descriptor {
  /// The result of locking a file.
  fileprivate enum Lock {
    /// This process holds the lock until it closes the file.
    case held
    /// Another process holds it.
    case elsewhere
    /// The file system has no locks.
    case unavailable
  }

  /// Locks the file (`flock(2)`) without waiting.
  fileprivate func lock() throws(SystemError) -> Lock {
    do throws(SystemError) {
      _ = try SystemError.check(.lock, name) { cl_lock(raw, 1, 0) }
      return .held
    } catch {
      if error.isBusy { return .elsewhere }
      guard error.isUnsupported || error.hasNoLocks else { throw error }
      return .unavailable
    }
  }
}

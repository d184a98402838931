internal import Glibc

/// A directory that is written under a temporary name and appears when it is complete. Without
/// `commit(last:)` it is removed with everything in it.
///
/// The temporary directory is beside the final name, or within the final directory if that exists,
/// which may be a mount point. It is locked while it is written, so one that a killed process left
/// behind is recognized and removed before the next one is created. If the file system has no
/// locks, it is never considered abandoned.
public final class AtomicDirectory {
  /// The directory to write into.
  public let directory: Directory
  private let parent: Directory
  private let temporary: ByteString
  /// The final name in `parent`; nil if `parent` itself is the final directory.
  private let name: ByteString?
  private let lock: FileLock?
  private var isDone = false

  private static let temporaryNames = RandomName(prefix: ".sandboxctl-directory-", suffix: ".tmp")
  private static let permissions: UInt16 = 0o700
  /// The maximum number of directories that are created until one is locked.
  private static let attempts = 100

  /// Creates the temporary directory of a path, which only this user can read, and missing
  /// directories above it.
  ///
  /// - Throws: an error with `isExisting` if the directory exists and is not empty.
  public init(path: ByteString) throws(SystemError) {
    let place = try Self.place(of: path)
    let made = try Self.make(in: place.parent)
    temporary = made.name
    name = place.name
    directory = made.directory
    lock = made.lock
    parent = place.parent
  }

  deinit {
    guard !isDone else { return }
    _ = try? parent.removeTree(temporary, watch: RemovalWatch(makesWritable: true))
  }

  /// The path of the directory to write into, without symbolic links.
  public func realPath() throws(SystemError) -> ByteString {
    try Host.realPath(parent.path).appending(temporary)
  }

  /// Makes everything durable and gives the directory its name.
  ///
  /// - Parameter last: the entry that marks the directory as complete. It is moved last if the
  ///   directory existed, whose entries cannot appear all at once.
  /// - Throws: an error with `isExisting` if an entry has appeared at the path in the meantime.
  public func commit(last: ByteString) throws(SystemError) {
    try directory.syncVolume()
    if let name {
      try parent.renameWithoutReplacing(temporary, to: name, in: parent)
      isDone = true
    } else {
      try moveEntries(last: last)
      isDone = true
      // An empty directory with its name is removed by the next run.
      try? parent.removeDirectory(temporary)
    }
    try parent.sync()
  }

  /// Moves all entries to the final directory, or none.
  private func moveEntries(last: ByteString) throws(SystemError) {
    let names = try directory.names().filter { $0 != last }
    var moved: [ByteString] = []
    do throws(SystemError) {
      for name in names + [last] {
        try directory.renameWithoutReplacing(name, to: name, in: parent)
        moved.append(name)
      }
    } catch {
      for name in moved.reversed() {
        try? parent.renameWithoutReplacing(name, to: name, in: directory)
      }
      throw error
    }
  }
}

// MARK: - The temporary directory

extension AtomicDirectory {
  /// The directory that gets the temporary one, and the final name in it.
  private struct Place: ~Copyable {
    let parent: Directory
    let name: ByteString?
  }

  /// A temporary directory with its lock, which a file system without locks does not have.
  private struct Made: ~Copyable {
    let name: ByteString
    let directory: Directory
    let lock: FileLock?
  }

  private static func place(of path: ByteString) throws(SystemError) -> Place {
    do throws(SystemError) {
      let existing = try Directory.open(path: path)
      removeAbandoned(in: existing)
      guard try existing.isEmpty() else {
        throw SystemError(.createDirectory, path, number: ENOTEMPTY)
      }
      return Place(parent: existing, name: nil)
    } catch {
      guard error.isAbsent, path.lastComponent != nil else { throw error }
    }
    let name = path.lastComponent ?? ""
    let parent = try Directory.make(path: path.dirname, permissions: permissions)
    // A dangling symbolic link.
    if try parent.statusIfPresent(name) != nil {
      throw SystemError(.open, path, number: ENOENT)
    }
    removeAbandoned(in: parent)
    return Place(parent: parent, name: name)
  }

  private static func make(in parent: borrowing Directory) throws(SystemError) -> Made {
    for _ in 0..<attempts {
      let name = temporaryNames.make()
      try parent.createDirectory(name, permissions: permissions)
      do throws(SystemError) { return try open(name, in: parent) } catch {
        try? parent.removeDirectory(name)
        // Before it is locked, another process can mistake it for abandoned.
        guard error.isBusy || error.isMissing else { throw error }
      }
    }
    throw SystemError(.lock, parent.path, number: EWOULDBLOCK)
  }

  private static func open(
    _ name: ByteString, in parent: borrowing Directory
  ) throws(SystemError) -> Made {
    let directory = try parent.directory(name)
    try directory.requireOwn()
    let lock = try self.lock(directory)
    guard try parent.statusIfPresent(name)?.identity == directory.status().identity else {
      throw SystemError(.open, directory.path, number: ENOENT)
    }
    return Made(name: name, directory: directory, lock: lock)
  }

  private static func lock(_ directory: borrowing Directory) throws(SystemError) -> FileLock? {
    do throws(SystemError) { return try FileLock(directory) } catch {
      guard error.isUnsupported || error.hasNoLocks else { throw error }
      return nil
    }
  }
}

// MARK: - Abandoned directories

extension AtomicDirectory {
  /// Removes the temporary directories of killed processes. Directories that are locked, have other
  /// names or belong to other users, and entries of other kinds are not touched.
  ///
  /// A directory that cannot be listed, opened or removed stays: it only takes space.
  public static func removeAbandoned(in parent: borrowing Directory) {
    var names: [ByteString] = []
    try? parent.forEachName { bytes in
      let name = ByteString(bytes)
      if temporaryNames.matches(name) { names.append(name) }
    }
    for name in names { try? removeIfAbandoned(name, in: parent) }
  }

  private static func removeIfAbandoned(
    _ name: ByteString, in parent: borrowing Directory
  ) throws(SystemError) {
    let directory = try parent.directory(name)
    let status = try directory.status()
    guard status.user == Host.userID else { return }
    // Throws if a process writes into it, and if the file system has no locks.
    let lock = try FileLock(directory)
    defer { withExtendedLifetime(lock) {} }
    // A process may have given it its final name in the meantime.
    if try parent.statusIfPresent(name)?.identity == status.identity {
      _ = try parent.removeTree(name, watch: RemovalWatch(makesWritable: true))
    }
  }
}

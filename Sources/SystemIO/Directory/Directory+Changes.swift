internal import CLinux
internal import Glibc
internal import Synchronization

extension Directory: MetadataTarget {
  /// Creates an unnamed file that only this user can read. It is deleted when it is closed, even if
  /// the program crashes.
  public func createUnnamed() throws(SystemError) -> Descriptor {
    do {
      return try opened(".", .create, flags: O_RDWR | cl_unnamed, permissions: 0o600)
    } catch {
      guard error.isUnsupported || error.number == EISDIR || error.isAbsent else { throw error }
    }
    // The file system does not support unnamed files (O_TMPFILE): create one and unlink it.
    let name = AtomicFile.temporaryName()
    let file = try create(name, permissions: 0o600)
    try remove(name)
    return file
  }

  /// Creates a child directory if it does not exist, and opens it.
  public func makeDirectory(
    _ name: ByteString, permissions: UInt16 = 0o777
  ) throws(SystemError) -> Directory {
    do {
      try createDirectory(name, permissions: permissions)
    } catch {
      guard error.number == EEXIST else { throw error }
    }
    return try directory(name)
  }

  /// Opens a child directory, or creates it as `createInherited(_:permissions:exactly:)` does. An
  /// existing one is not changed.
  public func makeInherited(_ name: ByteString) throws(SystemError) -> Directory {
    do throws(SystemError) {
      try createInherited(name)
    } catch {
      guard error.number == EEXIST else { throw error }
    }
    return try directory(name)
  }

  /// Whether this user may create and remove entries in the directory.
  public var canBeChanged: Bool { cl_can_change(raw) == 0 }

  /// Creates a child directory. An existing entry is an error.
  public func createDirectory(
    _ name: ByteString, permissions: UInt16 = 0o777
  ) throws(SystemError) {
    _ = try unsafe call(.createDirectory, name) { unsafe cl_mkdir(raw, $0, UInt32(permissions)) }
  }

  /// Creates a child directory. One that root creates belongs to the owner of this directory from
  /// the moment at which it exists, so that root locks no user out. An existing entry is an error.
  ///
  /// The directory is made in one that only root can change, and renamed: the owner of this
  /// directory could replace a child of it by another directory of root before its owner is set.
  ///
  /// - Parameter exactly: Whether all of `permissions` is set, whatever the umask is.
  public func createInherited(
    _ name: ByteString, permissions: UInt16 = 0o700, exactly: Bool = false
  ) throws(SystemError) {
    let owner = try status()
    guard Host.userID == 0, owner.user != 0 else {
      return try createOwned(name, permissions, exactly: exactly)
    }
    // On a full volume there may be no space for another directory.
    guard try statusIfPresent(name) == nil else {
      throw SystemError(.createDirectory, path.appending(name), number: EEXIST)
    }
    let outer = AtomicFile.temporaryName()
    try createDirectory(outer, permissions: 0o700)
    defer { try? removeDirectory(outer) }
    let own = try directory(outer)
    let made = try own.status()
    // Some file systems assign owners.
    guard made.user == 0, made.permissions & 0o077 == 0 else {
      return try createOwned(name, permissions, exactly: exactly)
    }
    do throws(SystemError) {
      try own.createOwned(name, permissions, exactly: exactly)
      try own.setOwner(user: owner.user, group: owner.group, of: name)
      try own.renameWithoutReplacing(name, to: name, in: self)
    } catch {
      try? own.removeDirectory(name)
      throw error
    }
  }

  private func createOwned(
    _ name: ByteString, _ permissions: UInt16, exactly: Bool
  ) throws(SystemError) {
    try createDirectory(name, permissions: permissions)
    if exactly { try directory(name).setPermissions(permissions) }
  }

  /// Creates a symbolic link.
  public func createLink(_ name: ByteString, to target: ByteString) throws(SystemError) {
    _ = try unsafe call(.createLink, name) { name in
      unsafe target.withCString { unsafe cl_symlink($0, raw, name) }
    }
  }

  /// Creates a hard link to the child `existing` of `directory`.
  public func createHardLink(
    _ name: ByteString, to existing: ByteString, in directory: borrowing Directory
  ) throws(SystemError) {
    let from = directory.raw
    _ = try unsafe call(.link, name) { name in
      unsafe existing.withCString { unsafe cl_link(from, $0, raw, name) }
    }
  }

  /// Creates a FIFO, a socket or a device. Devices require privileges.
  public func createSpecial(
    _ name: ByteString, kind: FileKind, permissions: UInt16, device: UInt64 = 0
  ) throws(SystemError) {
    let type: UInt32 =
      switch kind {
      case .fifo: S_IFIFO
      case .socket: S_IFSOCK
      case .characterDevice: S_IFCHR
      case .blockDevice: S_IFBLK
      case .file, .directory, .symlink: 0
      }
    guard type != 0 else {
      throw SystemError(.createSpecial, path.appending(name), number: EINVAL)
    }
    _ = try unsafe call(.createSpecial, name) {
      unsafe cl_mknod(raw, $0, type | UInt32(permissions), device)
    }
  }

  /// Renames a child to `newName` in `directory`. An existing entry is replaced, or is an error if
  /// `replacing` is false.
  public func rename(
    _ name: ByteString, to newName: ByteString, in directory: borrowing Directory,
    replacing: Bool = true
  ) throws(SystemError) {
    let to = directory.raw
    _ = try unsafe call(.rename, name) { name in
      unsafe newName.withCString { unsafe cl_rename(raw, name, to, $0, replacing ? 0 : 1) }
    }
  }

  /// Atomically exchanges a child with the child `other` of `directory`, of any kinds. Not every
  /// file system supports it.
  public func exchange(
    _ name: ByteString, with other: ByteString, in directory: borrowing Directory
  ) throws(SystemError) {
    let to = directory.raw
    _ = try unsafe call(.rename, name) { name in
      unsafe other.withCString { unsafe cl_exchange(raw, name, to, $0) }
    }
  }

  /// Removes a child that is not a directory.
  public func remove(_ name: ByteString) throws(SystemError) {
    _ = try unsafe call(.remove, name) { unsafe cl_unlink(raw, $0, 0) }
  }

  /// Removes an empty child directory.
  public func removeDirectory(_ name: ByteString) throws(SystemError) {
    _ = try unsafe call(.remove, name) { unsafe cl_unlink(raw, $0, AT_REMOVEDIR) }
  }

  /// Sets a child's permission bits. A symbolic link is refused.
  public func setPermissions(_ bits: UInt16, of name: ByteString) throws(SystemError) {
    _ = try unsafe call(.setMode, name) { unsafe cl_chmod_at(raw, $0, UInt32(bits)) }
  }

  /// Sets a child's owner. Does not follow a symbolic link.
  public func setOwner(
    user: UInt32, group: UInt32, of name: ByteString
  ) throws(SystemError) {
    _ = try unsafe call(.setOwner, name) { unsafe cl_chown_at(raw, $0, user, group) }
  }

  /// Sets a child's modification time. Does not follow a symbolic link.
  public func setModified(_ time: Timestamp, of name: ByteString) throws(SystemError) {
    _ = try unsafe call(.setTimes, name) {
      unsafe cl_set_mtime(raw, $0, time.seconds, time.nanoseconds)
    }
  }

  /// Sets the directory's permission bits.
  public func setPermissions(_ bits: UInt16) throws(SystemError) {
    try descriptor.setPermissions(bits)
  }

  /// Refuses a directory that another user put in the place of one that this process just created
  /// there (ESTALE): it has another owner than a new file. Some file systems assign owners.
  public func requireOwn() throws(SystemError) {
    let owner = try status().user
    if owner == Host.userID { return }
    let name = AtomicFile.temporaryName()
    let user = try create(name, permissions: 0o600).status().user
    try remove(name)
    if user != owner { throw SystemError.replaced(path) }
  }

  /// Changes the owner of an entry other than a directory that root just created to the owner of
  /// this directory.
  ///
  /// That user may have put another entry there since. A file of root that also has a name
  /// elsewhere, and a directory of root, are refused (ESTALE); an entry of another user is left
  /// unchanged.
  public func inheritOwner(_ name: ByteString) throws(SystemError) {
    guard Host.userID == 0 else { return }
    let owner = try status()
    if owner.user == 0 { return }
    _ = try unsafe call(.setOwner, name) { unsafe cl_give_away(raw, $0, owner.user, owner.group) }
  }

  /// Sets the directory's owner.
  public func setOwner(user: UInt32, group: UInt32) throws(SystemError) {
    try descriptor.setOwner(user: user, group: group)
  }

  /// Sets the directory's modification time.
  public func setModified(_ time: Timestamp) throws(SystemError) {
    try descriptor.setModified(time)
  }

  /// Makes the directory's entries durable: required after a child was created, renamed or removed.
  ///
  /// A file system that cannot sync directories (some FUSE file systems, vboxsf, old CIFS) is not
  /// an error; it is recorded in `UnsyncedDirectories`.
  public func sync() throws(SystemError) {
    do throws(SystemError) {
      try descriptor.sync()
    } catch {
      guard error.isSyncUnsupported else { throw error }
      UnsyncedDirectories.record(path)
    }
  }

  /// Makes all data written to the directory's volume durable. If its file system cannot sync the
  /// volume, as some FUSE file systems report, all volumes are synced, and the directory is
  /// recorded in `UnsyncedDirectories`, because errors are then unknown.
  public func syncVolume() throws(SystemError) {
    do throws(SystemError) {
      try descriptor.syncVolume()
    } catch {
      guard error.isSyncUnsupported else { throw error }
      Host.syncAllVolumes()
      UnsyncedDirectories.record(path)
    }
  }

  /// Sets and clears the directory's flags; see `Descriptor.setFlags(_:)`.
  public func setFlags(_ flags: UInt32) throws(SystemError) { try descriptor.setFlags(flags) }

  /// Clears the flags in `FileFlags.compared` if the file system supports flags.
  public func clearFlags() throws(SystemError) {
    let present = try flags() ?? 0
    if present & FileFlags.compared != 0 { try setFlags(present & ~FileFlags.compared) }
  }
}

/// The directories that could not be synced because their file system does not support it.
public enum UnsyncedDirectories {
  private static let noted = Mutex<ByteString?>(nil)

  /// The path of the first such directory, or nil if there is none.
  public static var first: ByteString? { noted.withLock { $0 } }

  static func record(_ path: ByteString) { noted.withLock { $0 = $0 ?? path } }
}

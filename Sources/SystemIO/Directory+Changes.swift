internal import CLinux
internal import Glibc

extension Directory {
  /// Makes a file without a name that only this program's user can read: it is gone when it is closed,
  /// however the program ends.
  public func createUnnamed() throws(SystemError) -> Descriptor {
    do {
      return try opened(".", .create, flags: O_RDWR | cl_unnamed, permissions: 0o600)
    } catch {
      guard error.isUnsupported || error.number == EISDIR || error.isAbsent else { throw error }
    }
    // A file system that knows no files without names: it has one for a moment.
    let name = AtomicFile.temporaryName()
    let file = try create(name, permissions: 0o600)
    try remove(name)
    return file
  }

  /// Makes a child directory, or takes the one that is there, and opens it.
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

  /// Whether this user may make and remove names in the directory.
  public var canBeChanged: Bool { cl_can_change(raw) == 0 }

  /// Makes a child directory; what is there already is refused.
  public func createDirectory(
    _ name: ByteString, permissions: UInt16 = 0o777
  ) throws(SystemError) {
    _ = try unsafe call(.createDirectory, name) { unsafe cl_mkdir(raw, $0, UInt32(permissions)) }
  }

  /// Makes a symbolic link.
  public func createLink(_ name: ByteString, to target: ByteString) throws(SystemError) {
    _ = try unsafe call(.createLink, name) { name in
      unsafe target.withCString { unsafe cl_symlink($0, raw, name) }
    }
  }

  /// Makes another name for the child file `existing` of `folder`.
  public func createHardLink(
    _ name: ByteString, to existing: ByteString, in directory: borrowing Directory
  ) throws(SystemError) {
    let from = directory.raw
    _ = try unsafe call(.link, name) { name in
      unsafe existing.withCString { unsafe cl_link(from, $0, raw, name) }
    }
  }

  /// Makes a fifo, a socket or a device; devices need privileges.
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

  /// Renames a child into `folder` as `newName`. What stands there is replaced, unless `replacing`
  /// is false: then it is an error, and nothing happens.
  public func rename(
    _ name: ByteString, to newName: ByteString, in directory: borrowing Directory,
    replacing: Bool = true
  ) throws(SystemError) {
    let to = directory.raw
    _ = try unsafe call(.rename, name) { name in
      unsafe newName.withCString { unsafe cl_rename(raw, name, to, $0, replacing ? 0 : 1) }
    }
  }

  /// Swaps a child with the child `other` of `folder`, whatever kinds of things they are, in one
  /// step; not every file system can.
  public func exchange(
    _ name: ByteString, with other: ByteString, in directory: borrowing Directory
  ) throws(SystemError) {
    let to = directory.raw
    _ = try unsafe call(.rename, name) { name in
      unsafe other.withCString { unsafe cl_exchange(raw, name, to, $0) }
    }
  }

  /// Removes a child that is no directory.
  public func remove(_ name: ByteString) throws(SystemError) {
    _ = try unsafe call(.remove, name) { unsafe cl_unlink(raw, $0, 0) }
  }

  /// Removes an empty child directory.
  public func removeDirectory(_ name: ByteString) throws(SystemError) {
    _ = try unsafe call(.remove, name) { unsafe cl_unlink(raw, $0, AT_REMOVEDIR) }
  }

  /// Sets a child's permission bits. The name must not be a link that others can put there.
  public func setPermissions(_ bits: UInt16, of name: ByteString) throws(SystemError) {
    _ = try unsafe call(.setMode, name) { unsafe cl_chmod_at(raw, $0, UInt32(bits)) }
  }

  /// Sets a child's owner; a link's own.
  public func setOwner(
    user: UInt32, group: UInt32, of name: ByteString
  ) throws(SystemError) {
    _ = try unsafe call(.setOwner, name) { unsafe cl_chown_at(raw, $0, user, group) }
  }

  /// Sets a child's time of modification; a link's own.
  public func setModified(_ time: Timestamp, of name: ByteString) throws(SystemError) {
    _ = try unsafe call(.setTimes, name) {
      unsafe cl_set_mtime(raw, $0, time.seconds, time.nanoseconds)
    }
  }

  /// Sets the directory's own permission bits.
  public func setPermissions(_ bits: UInt16) throws(SystemError) {
    try descriptor.setPermissions(bits)
  }

  /// Sets the directory's own owner.
  public func setOwner(user: UInt32, group: UInt32) throws(SystemError) {
    try descriptor.setOwner(user: user, group: group)
  }

  /// Sets the directory's own time of modification.
  public func setModified(_ time: Timestamp) throws(SystemError) {
    try descriptor.setModified(time)
  }

  /// Makes the directory's names durable: needed after a child was made, renamed or removed.
  ///
  /// A file system that cannot sync directories (some behind FUSE, vboxsf, old CIFS) is no error: it is
  /// noted in `UnsyncedDirectories`.
  public func sync() throws(SystemError) {
    do throws(SystemError) {
      try descriptor.sync()
    } catch {
      guard error.isSyncUnsupported else { throw error }
      UnsyncedDirectories.note(path)
    }
  }

  /// Makes everything durable that was written to the directory's volume.
  public func syncVolume() throws(SystemError) { try descriptor.syncVolume() }

  /// Whether nothing on the volume can be changed as it is mounted.
  public func isReadOnly() throws(SystemError) -> Bool { try descriptor.isReadOnly() }

  /// The free space of the directory's volume.
  public func space() throws(SystemError) -> VolumeSpace { try descriptor.space() }
}

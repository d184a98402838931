internal import CLinux
internal import Glibc

/// An open directory. Calls on its children are relative to it and follow no symbolic links.
///
/// A path may name another file a moment later, but an open directory stays the same. Trees are
/// therefore read and changed through these descriptors, and paths are joined only for messages.
public struct Directory: ~Copyable, Sendable {
  let descriptor: Descriptor

  init(adopting raw: Int32, path: ByteString) {
    descriptor = Descriptor(adopting: raw, name: path)
  }

  /// Gives up a descriptor that is owned elsewhere, without closing it.
  consuming func release() { descriptor.release() }

  /// The path that the directory was opened with, for messages only.
  public var path: ByteString { descriptor.name }

  var raw: Int32 { descriptor.raw }

  /// A path that leads this process to the open directory, although it or a directory above it may
  /// have been renamed or replaced; nil without `/proc`, as in a chroot.
  public func openPath() throws(SystemError) -> ByteString? {
    let path = ByteString("/proc/self/fd/\(raw)")
    do throws(SystemError) {
      let found = try Directory.open(path: path).status().identity
      return try found == status().identity ? path : nil
    } catch {
      if error.isMissing { return nil }
      throw error
    }
  }

  /// Opens the directory at a path, following symbolic links: for paths given by the user.
  public static func open(path: ByteString) throws(SystemError) -> Directory {
    let raw = try SystemError.check(.open, path) {
      unsafe path.withCString { unsafe cl_open(AT_FDCWD, $0, O_RDONLY | O_DIRECTORY, 0) }
    }
    return Directory(adopting: Int32(raw), path: path)
  }

  /// Opens the directory at a path without symbolic links, such as a result of `Host.realPath`. A
  /// link that has been added since is refused (ELOOP).
  public static func open(resolved path: ByteString) throws(SystemError) -> Directory {
    let raw = try SystemError.check(.open, path) {
      unsafe path.withCString { unsafe cl_open_resolved($0) }
    }
    return Directory(adopting: Int32(raw), path: path)
  }

  /// Opens the directory at a path, creating missing directories with the given permissions. The
  /// entries of created directories are durable.
  public static func make(
    path: ByteString, permissions: UInt16 = 0o777
  ) throws(SystemError) -> Directory {
    do {
      return try open(path: path)
    } catch {
      guard error.number == ENOENT, let last = path.lastComponent else { throw error }
      return try make(path: path.dirname, permissions: permissions)
        .makeDurable(last, permissions)
    }
  }

  /// Opens or creates the directory at a path without symbolic links. No link is followed.
  public static func make(
    resolved path: ByteString, permissions: UInt16 = 0o777
  ) throws(SystemError) -> Directory {
    do {
      return try open(resolved: path)
    } catch {
      guard error.number == ENOENT, let last = path.lastComponent else { throw error }
      return try make(resolved: path.parent, permissions: permissions).makeDurable(
        last, permissions)
    }
  }

  /// Opens the directory at a path without symbolic links, or creates it, with those above it that
  /// are missing, as `makeInherited(_:)` does. No link is followed.
  public static func makeInherited(resolved path: ByteString) throws(SystemError) -> Directory {
    do {
      return try open(resolved: path)
    } catch {
      guard error.number == ENOENT, let last = path.lastComponent else { throw error }
      let above = try makeInherited(resolved: path.parent)
      let made = try above.makeInherited(last)
      try above.sync()
      return made
    }
  }

  private borrowing func makeDurable(
    _ name: ByteString, _ permissions: UInt16
  ) throws(SystemError) -> Directory {
    let made = try makeDirectory(name, permissions: permissions)
    try sync()
    return made
  }

  /// Opens the same directory again. Each descriptor reports the volume's write errors on its own
  /// (syncfs(2)), which dup(2) would not.
  public func duplicate() throws(SystemError) -> Directory {
    let raw = try SystemError.check(.open, path) {
      unsafe cl_open(self.raw, ".", O_RDONLY | O_DIRECTORY, 0)
    }
    return Directory(adopting: Int32(raw), path: path)
  }

  /// Opens a child directory. A symbolic link is refused.
  public func directory(_ name: ByteString) throws(SystemError) -> Directory {
    let raw = try unsafe call(.open, name) {
      unsafe cl_open(self.raw, $0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0)
    }
    return Directory(adopting: Int32(raw), path: path.appending(name))
  }

  /// Opens a child file for reading. A symbolic link is refused; a FIFO or a device does not block.
  public func file(_ name: ByteString) throws(SystemError) -> Descriptor {
    try opened(name, .open, flags: Self.reading, permissions: 0)
  }

  /// Opens a child file for reading without updating its access time, if the caller may do so (the
  /// file's owner and root): for reading files that apps use.
  public func fileUntouched(_ name: ByteString) throws(SystemError) -> Descriptor {
    do {
      return try opened(name, .open, flags: Self.reading | cl_no_access_time, permissions: 0)
    } catch {
      guard error.number == EPERM else { throw error }
      return try file(name)
    }
  }

  private static let reading = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY

  /// Opens an existing child file for writing. A symbolic link is refused.
  public func fileForWriting(_ name: ByteString) throws(SystemError) -> Descriptor {
    let flags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
    return try opened(name, .open, flags: flags, permissions: 0)
  }

  /// Creates a child file and opens it for reading and writing. An existing entry is an error.
  public func create(
    _ name: ByteString, permissions: UInt16 = 0o666
  ) throws(SystemError) -> Descriptor {
    let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW
    return try opened(name, .create, flags: flags, permissions: permissions)
  }

  /// Opens a child file for reading and writing, creating it if it is missing: for lock files.
  public func openOrCreate(
    _ name: ByteString, permissions: UInt16 = 0o666
  ) throws(SystemError) -> Descriptor {
    let flags = O_RDWR | O_CREAT | O_NOFOLLOW
    return try opened(name, .create, flags: flags, permissions: permissions)
  }

  func opened(
    _ name: ByteString, _ operation: SystemError.Operation, flags: Int32, permissions: UInt16
  ) throws(SystemError) -> Descriptor {
    let raw = try unsafe call(operation, name) {
      unsafe cl_open(self.raw, $0, flags, UInt32(permissions))
    }
    return Descriptor(adopting: Int32(raw), name: path.appending(name))
  }

  /// Returns the status of the directory.
  public func status() throws(SystemError) -> FileStatus { try descriptor.status() }

  /// Returns the status of a child. Does not follow a symbolic link.
  public func status(_ name: ByteString) throws(SystemError) -> FileStatus {
    var status = cl_status()
    _ = try unsafe call(.status, name) { unsafe cl_stat(raw, $0, 0, &status) }
    return FileStatus(status)
  }

  /// Returns the status of a child, or nil if it does not exist.
  public func statusIfPresent(_ name: ByteString) throws(SystemError) -> FileStatus? {
    do {
      return try status(name)
    } catch {
      if error.isMissing { return nil }
      throw error
    }
  }

  /// Returns the status of a child. Follows a symbolic link.
  public func statusFollowing(_ name: ByteString) throws(SystemError) -> FileStatus {
    var status = cl_status()
    _ = try unsafe call(.status, name) { unsafe cl_stat(raw, $0, 1, &status) }
    return FileStatus(status)
  }

  /// Returns the status of a child, without following a symbolic link, and its access time in
  /// seconds since 1970.
  public func statusAndAccess(
    _ name: ByteString
  ) throws(SystemError) -> (status: FileStatus, accessed: Int64) {
    var status = cl_status()
    _ = try unsafe call(.status, name) { unsafe cl_lstat(raw, $0, &status) }
    return (FileStatus(status), status.atime)
  }

  /// Returns the target of a symbolic link.
  public func target(of name: ByteString) throws(SystemError) -> ByteString {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = try unsafe call(.readLink, name) { pointer in
      unsafe buffer.withUnsafeMutableBytes {
        unsafe cl_readlink(raw, pointer, $0.baseAddress, $0.count)
      }
    }
    return ByteString(buffer.prefix(count))
  }

  /// Returns the flags of the directory; see `Descriptor.flags()`.
  public func flags() throws(SystemError) -> UInt32? { try descriptor.flags() }

  /// Returns the flags of the directory and the known ones; see `Descriptor.knownFlags()`.
  public func knownFlags() throws(SystemError) -> (bits: UInt32, known: UInt32)? {
    try descriptor.knownFlags()
  }

  /// The extended attributes of the directory.
  public var attributes: ExtendedAttributes { descriptor.attributes }

  /// Returns the extended attributes of a child. Does not follow a symbolic link.
  public func attributes(of name: ByteString) -> ExtendedAttributes {
    ExtendedAttributes(of: raw, child: name, name: path.appending(name))
  }

  /// Runs a system call on a child, with fault point and error.
  func call(
    _ operation: SystemError.Operation, _ name: ByteString,
    body: (UnsafePointer<CChar>) -> Int
  ) throws(SystemError) -> Int {
    try SystemError.check(operation, path.appending(name)) {
      unsafe name.withCString { unsafe body($0) }
    }
  }
}

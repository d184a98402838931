internal import CLinux
internal import Glibc

/// An open directory; every call on its children is relative to it and follows no link.
///
/// A path may mean another file a moment later; a directory that is open stays the same one. So trees
/// are walked and changed through these handles, and paths are joined only for messages.
public struct Directory: ~Copyable, Sendable {
  let descriptor: Descriptor

  init(adopting raw: Int32, path: ByteString) {
    descriptor = Descriptor(adopting: raw, name: path)
  }

  /// Lets go of a descriptor that somebody else owns.
  consuming func release() { descriptor.release() }

  /// The path under which the directory was opened: for messages, not for calls.
  public var path: ByteString { descriptor.name }

  var raw: Int32 { descriptor.raw }

  /// Opens the directory at a path, following links: for the roots that a user names.
  public static func open(path: ByteString) throws(SystemError) -> Directory {
    let raw = try SystemError.check(.open, path) {
      unsafe path.withCString { unsafe cl_open(AT_FDCWD, $0, O_RDONLY | O_DIRECTORY, 0) }
    }
    return Directory(adopting: Int32(raw), path: path)
  }

  /// Opens the directory at a path that is known to have no symbolic link in it, as `Host.realPath` gives
  /// it; one that has come into it since is refused (ELOOP).
  public static func open(resolved path: ByteString) throws(SystemError) -> Directory {
    let raw = try SystemError.check(.open, path) {
      unsafe path.withCString { unsafe cl_open_resolved($0) }
    }
    return Directory(adopting: Int32(raw), path: path)
  }

  /// Opens the directory at a path, making what is missing of it with the given permissions. The names
  /// of the directories that it makes are durable.
  public static func make(
    path: ByteString, permissions: UInt16 = 0o777
  ) throws(SystemError) -> Directory {
    do {
      return try open(path: path)
    } catch {
      guard error.number == ENOENT, let last = path.lastComponent else { throw error }
      let above = path.parent
      return try make(path: above.isEmpty ? "." : above, permissions: permissions)
        .makeDurable(last, permissions)
    }
  }

  /// The same for a path that has no symbolic link in it: none is followed.
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

  private borrowing func makeDurable(
    _ name: ByteString, _ permissions: UInt16
  ) throws(SystemError) -> Directory {
    let made = try makeDirectory(name, permissions: permissions)
    try sync()
    return made
  }

  /// A second handle on the same directory, opened anew: each is told of the volume's errors for itself
  /// (syncfs(2)).
  public func duplicate() throws(SystemError) -> Directory {
    let raw = try SystemError.check(.open, path) {
      unsafe cl_open(self.raw, ".", O_RDONLY | O_DIRECTORY, 0)
    }
    return Directory(adopting: Int32(raw), path: path)
  }

  /// Opens a child directory. A link in its place is refused.
  public func directory(_ name: ByteString) throws(SystemError) -> Directory {
    let raw = try unsafe call(.open, name) {
      unsafe cl_open(self.raw, $0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0)
    }
    return Directory(adopting: Int32(raw), path: path.appending(name))
  }

  /// Opens a child file for reading. A link is refused; a fifo or a device does not block.
  public func file(_ name: ByteString) throws(SystemError) -> Descriptor {
    try opened(name, .open, flags: Self.reading, permissions: 0)
  }

  /// Opens a child file for reading without its time of access being set, where the system lets the
  /// caller (the file's owner and root): for a program that reads what others use.
  public func fileUntouched(_ name: ByteString) throws(SystemError) -> Descriptor {
    do {
      return try opened(name, .open, flags: Self.reading | cl_no_access_time, permissions: 0)
    } catch {
      guard error.number == EPERM else { throw error }
      return try file(name)
    }
  }

  private static let reading = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY

  /// Opens a child file for writing. A link is refused, and nothing is made.
  public func fileForWriting(_ name: ByteString) throws(SystemError) -> Descriptor {
    let flags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
    return try opened(name, .open, flags: flags, permissions: 0)
  }

  /// Makes a new child file and opens it for writing; what is there already is refused.
  public func create(
    _ name: ByteString, permissions: UInt16 = 0o666
  ) throws(SystemError) -> Descriptor {
    let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW
    return try opened(name, .create, flags: flags, permissions: permissions)
  }

  /// Opens a child file for reading and writing, making it if it is missing: for lock files.
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

  /// The status of the directory itself.
  public func status() throws(SystemError) -> FileStatus { try descriptor.status() }

  /// The status of a child; a link's own.
  public func status(_ name: ByteString) throws(SystemError) -> FileStatus {
    var status = cl_status()
    _ = try unsafe call(.status, name) { unsafe cl_stat(raw, $0, 0, &status) }
    return FileStatus(status)
  }

  /// The status of a child, nil when there is none.
  public func statusIfPresent(_ name: ByteString) throws(SystemError) -> FileStatus? {
    do {
      return try status(name)
    } catch {
      if error.isMissing { return nil }
      throw error
    }
  }

  /// The status of what a child link points to, or of the child if it is none.
  public func statusFollowing(_ name: ByteString) throws(SystemError) -> FileStatus {
    var status = cl_status()
    _ = try unsafe call(.status, name) { unsafe cl_stat(raw, $0, 1, &status) }
    return FileStatus(status)
  }

  /// The target of a child link.
  public func target(of name: ByteString) throws(SystemError) -> ByteString {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = try unsafe call(.readLink, name) { pointer in
      unsafe buffer.withUnsafeMutableBytes {
        unsafe cl_readlink(raw, pointer, $0.baseAddress, $0.count)
      }
    }
    return ByteString(buffer.prefix(count))
  }

  /// The flags of the directory itself (`Descriptor.flags()`).
  public func flags() throws(SystemError) -> UInt32? { try descriptor.flags() }

  /// The extended attributes of the directory itself.
  public var attributes: ExtendedAttributes { descriptor.attributes }

  /// The extended attributes of a child; a link's own.
  public func attributes(of name: ByteString) -> ExtendedAttributes {
    ExtendedAttributes(of: raw, child: name, name: path.appending(name))
  }

  /// One call on a child, with its fault point and its error.
  func call(
    _ operation: SystemError.Operation, _ name: ByteString,
    _ body: (UnsafePointer<CChar>) -> Int
  ) throws(SystemError) -> Int {
    try SystemError.check(operation, path.appending(name)) {
      unsafe name.withCString { unsafe body($0) }
    }
  }
}

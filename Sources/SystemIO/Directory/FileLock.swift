internal import CLinux
internal import Glibc

/// A lock between processes (`flock(2)`), held during the lifetime of the value.
///
/// The lock is advisory and ends with the process, so none is left behind. The file stays: if it
/// were removed, two processes could lock two different files, unless both use
/// `acquire(removable:in:)`.
public struct FileLock: ~Copyable, Sendable {
  private let file: Descriptor

  /// Acquires the lock `name` in `directory`, creating the file if it is missing. Throws an error
  /// with `isBusy` if another process holds the lock.
  public init(
    _ name: ByteString, in directory: borrowing Directory, exclusive: Bool = true,
    waiting: Bool = false
  ) throws(SystemError) {
    try self.init(
      directory.openOrCreate(name, permissions: 0o600), exclusive: exclusive, waiting: waiting)
  }

  /// Acquires a lock on a directory itself, which needs no file. Throws an error with `isBusy` if
  /// another process holds it; any other error if the file system has no such locks.
  public init(_ directory: borrowing Directory) throws(SystemError) {
    let (above, path) = (directory.raw, directory.path)
    let raw = try SystemError.check(.open, path) {
      unsafe ByteString(".").withCString { unsafe cl_open(above, $0, O_RDONLY | O_DIRECTORY, 0) }
    }
    try self.init(
      Descriptor(adopting: Int32(raw), name: path), exclusive: true, waiting: false)
  }

  /// Acquires the lock `name` in `directory`, which must exist. Throws an error with `isMissing` if
  /// it does not, and one with `isBusy` if another process holds it.
  public init(existing name: ByteString, in directory: borrowing Directory) throws(SystemError) {
    try self.init(directory.file(name), exclusive: true, waiting: false)
  }

  /// Acquires the lock `name` in `directory`, creating the file if it is missing, where the process
  /// that holds it may remove the file: a lock on a file that lost its name excludes no process, so
  /// the present file is locked instead. Throws an error with `isBusy` if another process holds it.
  public static func acquire(
    removable name: ByteString, in directory: borrowing Directory
  ) throws(SystemError) -> FileLock {
    for _ in 0..<attempts {
      let lock = try FileLock(name, in: directory)
      if try lock.isCurrent(name, in: directory) { return lock }
    }
    return try FileLock(name, in: directory)
  }

  /// The maximum number of files to lock: a file system whose files have no constant identity must
  /// not make this loop endless.
  private static let attempts = 10

  /// Whether the locked file still has its name.
  private func isCurrent(
    _ name: ByteString, in directory: borrowing Directory
  ) throws(SystemError) -> Bool {
    try directory.statusIfPresent(name)?.identity == file.status().identity
  }

  private init(
    _ file: consuming Descriptor, exclusive: Bool, waiting: Bool
  ) throws(SystemError) {
    let raw = file.raw
    _ = try SystemError.check(.lock, file.name) {
      cl_lock(raw, exclusive ? 1 : 0, waiting ? 1 : 0)
    }
    if exclusive { Self.sign(raw) }
    self.file = file
  }

  /// Records the holder and the time in the file, for messages of processes that find it locked.
  /// Informational: a full disk does not prevent the lock.
  ///
  /// A file that also has a name elsewhere is not written to: in another user's directory it may be
  /// any file of root.
  private static func sign(_ raw: Int32) {
    var status = cl_status()
    guard unsafe cl_stat_open(raw, &status) == 0, status.links == 1 else { return }
    let text = Array("\(getpid()) \(Host.now().seconds)\n".utf8)
    let written = unsafe text.withUnsafeBytes {
      unsafe cl_pwrite(raw, $0.baseAddress, $0.count, 0)
    }
    _ = cl_truncate(raw, Int64(max(0, written)))
  }

  /// Returns the recorded holder of a lock, or nil if none can be read.
  public static func holder(of name: ByteString, in directory: borrowing Directory) -> LockHolder? {
    guard let bytes = try? directory.file(name).readAll(limit: 64) else { return nil }
    let words = bytes.prefix { $0 != UInt8(ascii: "\n") }.split(separator: UInt8(ascii: " "))
      .map { String(decoding: $0, as: UTF8.self) }
    guard words.count == 2, let process = Int32(words[0]), process > 0,
      let seconds = Int64(words[1]), (0..<(1 << 40)).contains(seconds)
    else { return nil }
    return LockHolder(process: process, since: Timestamp(seconds: seconds))
  }

  /// Unlocks explicitly: a child process that another thread is starting still has a copy of the
  /// descriptor, which would keep the lock until it calls exec.
  deinit { _ = cl_unlock(file.raw) }

  /// Whether a process, this one included, holds the lock `name` exclusively; false if the lock
  /// file does not exist. Changes nothing, but briefly prevents others from locking exclusively.
  public static func isHeld(
    _ name: ByteString, in directory: borrowing Directory
  ) throws(SystemError) -> Bool {
    do throws(SystemError) {
      _ = try FileLock(directory.file(name), exclusive: false, waiting: false)
      return false
    } catch {
      if error.isMissing { return false }
      if error.isBusy { return true }
      throw error
    }
  }
}

/// The process that holds a lock, as it recorded itself.
public struct LockHolder: Sendable, Hashable {
  /// The process ID on the machine or in the container where it runs.
  public let process: Int32
  /// The time when the lock was acquired.
  public let since: Timestamp
}

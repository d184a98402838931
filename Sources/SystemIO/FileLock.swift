internal import CLinux
internal import Glibc

/// A lock between programs (`flock(2)`), held as long as this value lives.
///
/// Advisory: it binds only those who ask. It goes with the process, however that ends, so no lock
/// is ever left behind. The file stays: removing it would let two programs lock two files.
public struct FileLock: ~Copyable, Sendable {
  private let file: Descriptor

  /// Takes the lock named `name` in `folder`, making the file if need be. An error for which
  /// `isBusy` holds says that another program has it.
  public init(
    _ name: ByteString, in directory: borrowing Directory, exclusive: Bool = true,
    waiting: Bool = false
  ) throws(SystemError) {
    try self.init(
      directory.openOrCreate(name, permissions: 0o600), exclusive: exclusive, waiting: waiting)
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

  /// Notes in the file who has the lock and since when, for those who find it taken. It binds nobody, and
  /// a disk that is full is no reason to do without the lock.
  private static func sign(_ raw: Int32) {
    let text = Array("\(getpid()) \(Host.now().seconds)\n".utf8)
    let written = unsafe text.withUnsafeBytes {
      unsafe cl_pwrite(raw, $0.baseAddress, $0.count, 0)
    }
    _ = cl_truncate(raw, Int64(max(0, written)))
  }

  /// Who noted in the file of a lock that it took it, where that can be read.
  public static func holder(of name: ByteString, in directory: borrowing Directory) -> LockHolder? {
    guard let bytes = try? directory.file(name).readAll(limit: 64) else { return nil }
    let words = bytes.prefix { $0 != UInt8(ascii: "\n") }.split(separator: UInt8(ascii: " "))
      .map { String(decoding: $0, as: UTF8.self) }
    guard words.count == 2, let process = Int32(words[0]), process > 0,
      let seconds = Int64(words[1]), (0..<(1 << 40)).contains(seconds)
    else { return nil }
    return LockHolder(process: process, since: Timestamp(seconds: seconds))
  }

  /// Gives the lock back itself: a program that another thread is just starting still has a copy of
  /// the descriptor, which would keep the lock until that program runs.
  deinit { _ = cl_unlock(file.raw) }

  /// Whether somebody holds the lock named `name`, exclusively; a lock that was never made is nobody's.
  /// Nothing is made or changed, but for a moment nobody else gets the lock exclusively.
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

/// The process that has a lock, as it noted itself.
public struct LockHolder: Sendable, Hashable {
  /// The number of the process, on the machine or in the container where it runs.
  public let process: Int32
  /// When it took the lock.
  public let since: Timestamp
}

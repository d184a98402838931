internal import CLinux

/// A lock between programs (`flock(2)`), held as long as this value lives.
///
/// Advisory: it binds only those who ask. It goes with the process, however that ends, so no lock
/// is ever left behind. The file stays: removing it would let two programs lock two files.
public struct FileLock: ~Copyable, Sendable {
  private let file: Descriptor

  /// Takes the lock named `name` in `folder`, making the file if need be. An error for which
  /// `isBusy` holds says that another program has it.
  public init(
    _ name: ByteString, in folder: borrowing Folder, exclusive: Bool = true, waiting: Bool = false
  ) throws(SystemError) {
    try self.init(
      folder.openOrCreate(name, permissions: 0o600), exclusive: exclusive, waiting: waiting)
  }

  private init(
    _ file: consuming Descriptor, exclusive: Bool, waiting: Bool
  ) throws(SystemError) {
    let raw = file.raw
    _ = try SystemError.check(.lock, file.name) {
      cl_lock(raw, exclusive ? 1 : 0, waiting ? 1 : 0)
    }
    self.file = file
  }

  /// Gives the lock back itself: a program that another thread is just starting still has a copy of
  /// the descriptor, which would keep the lock until that program runs.
  deinit { _ = cl_unlock(file.raw) }

  /// Whether somebody holds the lock named `name`, exclusively; a lock that was never made is nobody's.
  /// Nothing is made or changed, but for a moment nobody else gets the lock exclusively.
  public static func isHeld(
    _ name: ByteString, in folder: borrowing Folder
  ) throws(SystemError) -> Bool {
    do throws(SystemError) {
      _ = try FileLock(folder.file(name), exclusive: false, waiting: false)
      return false
    } catch {
      if error.isMissing { return false }
      if error.isBusy { return true }
      throw error
    }
  }
}

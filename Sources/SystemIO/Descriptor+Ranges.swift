internal import CLinux
internal import Glibc

/// Locks on ranges of a file's bytes (`F_OFD_SETLK`, fcntl(2)).
///
/// They meet the POSIX locks of other programs, and of this one. Unlike those they belong to this
/// open file alone: closing another descriptor of the same file does not drop them, closing this one
/// does.
extension Descriptor {
  /// Takes a shared lock; false when someone else holds an exclusive one on any of the bytes. The
  /// file must be open for reading.
  public func lockShared(_ bytes: Range<UInt64>) throws(SystemError) -> Bool {
    do {
      try setLock(F_RDLCK, bytes)
      return true
    } catch {
      if error.isBusy || error.number == EACCES { return false }
      throw error
    }
  }

  /// Gives a lock back.
  public func unlock(_ bytes: Range<UInt64>) throws(SystemError) { try setLock(F_UNLCK, bytes) }

  /// Gives all locks back that this open file has, before it is closed: a program that another
  /// thread is just starting still has a copy of the descriptor, which would keep them until that
  /// program runs. Nothing is told of an error: the closing that follows does the same.
  public func unlockAll() { _ = cl_lock_range(raw, F_UNLCK, 0, 0) }

  /// Whether someone else holds a lock of any kind on one of the bytes.
  public func isLockedElsewhere(_ bytes: Range<UInt64>) throws(SystemError) -> Bool {
    try SystemError.check(.lock, name) {
      cl_range_is_locked(raw, Int64(clamping: bytes.lowerBound), Int64(clamping: bytes.count))
    } != 0
  }

  private func setLock(_ type: Int32, _ bytes: Range<UInt64>) throws(SystemError) {
    _ = try SystemError.check(.lock, name) {
      cl_lock_range(
        raw, type, Int64(clamping: bytes.lowerBound), Int64(clamping: bytes.count))
    }
  }
}

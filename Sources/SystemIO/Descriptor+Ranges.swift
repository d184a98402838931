internal import CLinux
internal import Glibc

/// Locks on byte ranges of a file (`F_OFD_SETLK`, fcntl(2)).
///
/// They conflict with POSIX locks of other processes and of this one. They belong to the open file
/// description: closing another descriptor of the same file does not release them, closing this one
/// does.
extension Descriptor {
  /// Acquires a shared lock. Returns false if another process holds an exclusive lock on any of the
  /// bytes. The file must be open for reading.
  package func lockShared(_ bytes: Range<UInt64>) throws(SystemError) -> Bool {
    do {
      try setLock(F_RDLCK, bytes)
      return true
    } catch {
      if error.isBusy || error.number == EACCES { return false }
      throw error
    }
  }

  /// Releases a lock.
  package func unlock(_ bytes: Range<UInt64>) throws(SystemError) { try setLock(F_UNLCK, bytes) }

  /// Releases all locks of this open file before it is closed. A child process that another thread
  /// is starting still has a copy of the descriptor, which would keep the locks until it calls
  /// exec. Errors are ignored because closing the file follows.
  package func unlockAll() { _ = cl_lock_range(raw, F_UNLCK, 0, 0) }

  /// Whether a lock of any kind on any of the bytes is held, other than by this open file.
  package func isLockedElsewhere(_ bytes: Range<UInt64>) throws(SystemError) -> Bool {
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

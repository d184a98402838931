internal import Glibc
internal import Synchronization

/// The directories that could not be synced because their file system does not support it.
package enum UnsyncedDirectories {
  private static let noted = Mutex<ByteString?>(nil)

  /// The path of the first such directory, or nil if there is none.
  package static var first: ByteString? { noted.withLock { $0 } }

  static func note(_ path: ByteString) { noted.withLock { $0 = $0 ?? path } }
}

extension SystemError {
  /// Whether fsync(2) failed because the file system cannot sync that kind of file.
  var isSyncUnsupported: Bool {
    operation == .sync && (number == EINVAL || number == ENOTSUP || number == EOPNOTSUPP)
  }
}

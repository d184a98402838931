internal import SystemIO

/// The content of a larger file in a backup, apart from the source.
///
/// Unchecked: one thread at a time reads it.
final class MobileSyncContent: @unchecked Sendable, DetachedContent {
  private var payload: MobileSyncPayload
  /// The path of the entry, for messages.
  private let path: ByteString

  init(_ payload: consuming MobileSyncPayload, of path: ByteString) {
    self.payload = payload
    self.path = path
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(InterchangeError) -> Int {
    do throws(PayloadFault) { return try payload.read(into: buffer) } catch {
      throw error.error(of: path)
    }
  }
}

extension PayloadFault {
  /// Returns the error of the entry whose content cannot be read.
  func error(of path: ByteString) -> InterchangeError {
    InterchangeError(
      .damagedEntry, "read the file in the backup", subject: path, reason: reason, cause: cause)
  }
}

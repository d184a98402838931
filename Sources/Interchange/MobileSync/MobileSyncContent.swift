internal import SystemIO

/// The content of a larger file in a backup, detached from the source.
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

  func append(to bytes: inout [UInt8]) throws(InterchangeError) -> Int {
    do throws(PayloadFault) { return try payload.append(to: &bytes) } catch {
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

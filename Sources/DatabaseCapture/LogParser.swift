internal import Codecs
package import SystemIO

/// A parser for a database's log or journal that requests one range after another, so that the
/// caller need not hold the file in memory.
///
/// The input may be arbitrary. The parser decides as SQLite does when it opens the database, and
/// holds 16 bytes for each effective page, at most twice that.
package protocol LogParser {
  /// The next range of the log to pass to `parse`, within its size and shorter than 66 KiB, or nil
  /// at the end.
  var next: Range<UInt64>? { get }

  /// Receives all bytes of the requested range.
  ///
  /// - Throws: `LogRefusal` if SQLite would refuse the log, or would need another file to decide.
  mutating func parse(_ bytes: Span<UInt8>) throws(LogRefusal)

  /// Returns the pages that SQLite would transfer to the database, once nothing more is requested,
  /// or nil if the log has no effect. Must be called only once.
  mutating func overlay() -> PageOverlay?
}

/// The reason a log cannot be merged into its database.
package enum LogRefusal: Error, Hashable, Sendable {
  /// The log has a valid checksum and an unknown format version.
  case unknownVersion(UInt32)
  /// The journal belongs to a transaction over several databases, which was committed unless the
  /// file of this name exists.
  case severalDatabases(superJournal: ByteString)
  /// The page size of the log differs from that of the database, in bytes.
  case otherPageSize(log: Int, database: Int)
  /// The database would have this size in bytes, which the two files cannot provide.
  case tooLarge(UInt64)

  /// A sentence about the log: "it is …".
  package var reason: String {
    switch self {
    case .unknownVersion(let version): "it has the unknown version \(version)"
    case .severalDatabases(let name):
      """
      it belongs to a transaction over several databases, and another file determines whether it was \
      committed: '\(name)'
      """
    case .otherPageSize(let log, let database):
      "its pages have \(log) bytes, but those of the database have \(database)"
    case .tooLarge(let size):
      "it gives the database a size of \(size) bytes, more than both files hold"
    }
  }
}

extension Span<UInt8> {
  /// Returns the 32-bit number at an offset, whose bytes must exist. Numbers in SQLite's files are
  /// big-endian.
  @inline(__always)
  func word(at offset: Int) -> UInt32 {
    LittleEndian.integer(self, at: offset, as: UInt32.self).byteSwapped
  }
}

public import SystemIO

/// Reads a database's log or journal from the ranges that it asks for, one after the other, so that
/// nobody has to hold the file.
///
/// What it is given may be anything: it decides as SQLite does when it opens the database, and holds
/// 16 bytes for each page that counts, twice that at most.
public protocol LogParser {
  /// The bytes of the log that are wanted next, within its size and less than 66 KiB; nil when no more
  /// are.
  var next: Range<UInt64>? { get }

  /// Takes those bytes, all of them.
  ///
  /// - Throws: when SQLite would refuse the log, or would look at another file to decide.
  mutating func take(_ bytes: Span<UInt8>) throws(LogRefusal)

  /// What SQLite would take over into the database, once nothing more is wanted; nil when the log
  /// counts for nothing. To be asked once.
  mutating func overlay() -> PageOverlay?
}

/// Why a log cannot be merged into its database.
public enum LogRefusal: Error, Hashable, Sendable {
  /// Its checksum holds, and its format is another one.
  case unknownVersion(UInt32)
  /// The journal is part of a transaction over several databases: whether it was committed is told by
  /// whether the file of this name is there.
  case severalDatabases(superJournal: ByteString)
  /// The pages of the log are not as large as those of the database, in bytes.
  case otherPageSize(log: Int, database: Int)
  /// The database would have so many bytes, which are in neither file.
  case tooLarge(UInt64)

  /// A sentence on the log: "it is …".
  public var reason: String {
    switch self {
    case .unknownVersion(let version): "it is of version \(version), which is not known"
    case .severalDatabases(let name):
      """
      it belongs to a transaction over several databases, and another file tells whether that was \
      committed: '\(name)'
      """
    case .otherPageSize(let log, let database):
      "its pages have \(log) bytes and those of the database \(database)"
    case .tooLarge(let size):
      "by it the database has \(size) bytes, and not so many are in both"
    }
  }
}

public import SystemIO

/// One of the files that make up a SQLite database.
public enum DatabaseMember: String, CaseIterable, Hashable, Sendable {
  /// The database's own file.
  case database = ""
  /// The write-ahead log: committed transactions that are not in the database's file yet.
  case log = "-wal"
  /// The rollback journal: what a transaction that is not committed has overwritten.
  case journal = "-journal"
  /// The log's index, which whoever opens the database makes anew: no part of a capture.
  case sharedMemory = "-shm"

  /// What stands behind the database's name in the file's.
  public var suffix: [UInt8] { Array(rawValue.utf8) }

  /// The unit that a file of this name belongs to if the database is there, and as what; nil for a
  /// name that ends like none of a database's companions.
  public static func owner(
    of name: ByteString
  ) -> (database: ByteString, member: DatabaseMember)? {
    for member in [DatabaseMember.log, .journal, .sharedMemory] {
      let suffix = member.suffix
      guard name.count > suffix.count, name.bytes.suffix(suffix.count).elementsEqual(suffix) else {
        continue
      }
      return (ByteString(name.bytes.dropLast(suffix.count)), member)
    }
    return nil
  }
}

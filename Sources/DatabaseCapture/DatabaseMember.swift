package import SystemIO

/// A file of a SQLite database.
package enum DatabaseMember: String, CaseIterable, Hashable, Sendable {
  /// The database file.
  case database = ""
  /// The write-ahead log: committed transactions that are not in the database file yet.
  case log = "-wal"
  /// The rollback journal: the pages overwritten by an uncommitted transaction.
  case journal = "-journal"
  /// The log's index, which SQLite rebuilds when it opens the database. Not captured.
  case sharedMemory = "-shm"

  /// The suffix of the file name after the database's name.
  package var suffix: [UInt8] { Array(rawValue.utf8) }

  /// Returns the database and the member kind for a file name, assuming the database exists, or nil
  /// if the name has none of the suffixes.
  package static func owner(
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

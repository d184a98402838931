internal import Codecs
package import SystemIO

/// A database with its log and journal, which are captured, restored and selected together.
///
/// A file `X` next to a file `X-wal` or a rollback journal `X-journal` is a database regardless of
/// its first bytes, because databases may be encrypted. So is any file that begins with SQLite's
/// magic. The capture determines the existing companions, because a log may appear and disappear at
/// any time.
package struct DatabaseUnit: Hashable, Sendable {
  /// The name of the database file.
  package let name: ByteString

  /// Creates the unit of a database.
  package init(_ name: ByteString) { self.name = name }

  /// Returns the name of a member.
  package func name(of member: DatabaseMember) -> ByteString {
    name.concatenating(ByteString(member.suffix))
  }

  /// The members that a capture stores, in reading order.
  static let captured: [DatabaseMember] = [.database, .log, .journal]

  /// Whether a file begins with SQLite's magic.
  package static func hasMagic(_ file: borrowing Descriptor) throws(SystemError) -> Bool {
    let head = try file.read(count: DatabaseHead.bytes.count, at: 0)
    return DatabaseHead.begins(head.span)
  }

  /// The number of bytes that `pageSize(head:)` needs.
  package static let headSize = 18

  /// Returns the page size of a database in bytes from its first bytes, or nil if they are not a
  /// valid header, as in an encrypted database.
  package static func pageSize(head: Span<UInt8>) -> Int? {
    guard head.count >= headSize, DatabaseHead.begins(head) else { return nil }
    let size = UInt32(head[16]) << 8 | UInt32(head[17])
    // 65536 does not fit into 16 bits and is stored as 1.
    return pageSize(stored: size == 1 ? 65_536 : size)
  }

  /// Returns a number as a page size in bytes, or nil if SQLite does not use such pages
  /// (fileformat2, section 1.3.2).
  static func pageSize(stored bytes: UInt32) -> Int? {
    guard (512...65_536).contains(bytes), bytes.nonzeroBitCount == 1 else { return nil }
    return Int(bytes)
  }
}

extension DatabaseUnit {
  /// Whether the file is a database: it begins like one, or has a log or a rollback journal, as an
  /// encrypted database may have. A journal that has gone since it was listed was one.
  ///
  /// - Parameter listed: the names of the files that an earlier listing of the directory found with
  ///   the names of its log and its journal.
  package func isDatabase(
    in directory: borrowing Directory, listed: [ByteString]
  ) throws(SystemError) -> Bool {
    if listed.contains(name(of: .log)) { return true }
    if try Self.hasMagic(directory.fileUntouched(name)) { return true }
    if hasCompanions(in: directory) { return true }
    for companion in listed {
      if try directory.statusIfPresent(companion) == nil { return true }
    }
    return false
  }

  /// Whether a file of this size may be a database: it consists of pages, the smallest of which
  /// have 512 bytes. So few other files have to be opened.
  package static func mayBeDatabase(size: UInt64) -> Bool { size > 0 && size.isMultiple(of: 512) }

  /// Whether the file is a database by the files beside it: it has a log or a rollback journal. One
  /// that cannot be read does not count.
  package func hasCompanions(in directory: borrowing Directory) -> Bool {
    if let log = try? directory.statusIfPresent(name(of: .log)), log.kind == .file { return true }
    return hasJournal(in: directory)
  }

  /// Whether the file beside it with a journal's name is SQLite's, by its header, which is not
  /// encrypted in the journal of an encrypted database.
  package func hasJournal(in directory: borrowing Directory) -> Bool {
    guard let head = journalHead(in: directory) else { return false }
    return Self.isJournal(head: head, beside: (try? directory.status(name).size) ?? 0)
  }

  /// The number of bytes that `isJournal(head:beside:)` needs.
  package static let journalHeadSize = RollbackJournal.headerLength

  /// Whether a file with a journal's name is SQLite's, by its first bytes and the size of the file
  /// beside it. The journal of a transaction that has ended says little: then that file must also
  /// consist of pages.
  package static func isJournal(head: [UInt8], beside size: UInt64) -> Bool {
    switch RollbackJournal.Phase(head: head.span) {
    case .live: true
    case .idle: mayBeDatabase(size: size)
    case nil: false
    }
  }

  /// Whether a journal beside the file would undo a transaction if the file is a database, even an
  /// encrypted one.
  package func hasLiveJournal(in directory: borrowing Directory) -> Bool {
    guard let head = journalHead(in: directory) else { return false }
    return RollbackJournal.Phase(head: head.span) == .live
  }

  private func journalHead(in directory: borrowing Directory) -> [UInt8]? {
    try? directory.regularFile(name(of: .journal))?.read(count: Self.journalHeadSize, at: 0)
  }
}

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

  /// Whether a name has one of the suffixes of logs, journals and indexes.
  package static func mayBeSidecar(_ name: Span<UInt8>) -> Bool {
    // Few names end with the last letter of a suffix.
    guard name.count > 4 else { return false }
    let last = name[name.count - 1]
    guard last == UInt8(ascii: "l") || last == UInt8(ascii: "m") else { return false }
    return owner(of: ByteString(name)) != nil
  }

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

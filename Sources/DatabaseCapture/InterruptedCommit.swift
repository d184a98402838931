package import SystemIO

/// A transaction over several attached databases that was interrupted, by the journal of one of
/// them (fileformat2, section 3; pager.c, pager_playback).
///
/// The journal ends with the absolute path of a super-journal, which is deleted to commit. While
/// that file exists, SQLite rolls the transaction back; otherwise it takes it as committed and
/// deletes the journal. A copy of the database elsewhere, or without that file, would keep the
/// pages of a transaction that was not committed, and would be damaged.
package enum InterruptedCommit: Hashable, Sendable {
  /// The super-journal exists: the transaction was not committed, in none of the databases. The
  /// journal is stored without its name, so that it rolls back this database wherever it is opened.
  case uncommitted(superJournal: ByteString)
  /// The super-journal was not found. The transaction was committed if it does not exist, but it
  /// may be at a path that only the app sees, or the files are a copy of the app's.
  case undecided(superJournal: ByteString)

  /// Whether a copy is consistent.
  package var isDecided: Bool { if case .uncommitted = self { true } else { false } }
}

extension InterruptedCommit {
  /// Returns the transaction that a journal belongs to, and the offset of the record with the
  /// super-journal's name; nil if the journal names none. A copy that ends there rolls back an
  /// uncommitted transaction by itself.
  package static func find(
    in journal: borrowing Descriptor, size: UInt64, beside directory: borrowing Directory
  ) throws(SystemError) -> (commit: InterruptedCommit, offset: UInt64)? {
    let magic = RollbackJournal.magic
    guard try journal.read(count: magic.count, at: 0) == magic else { return nil }
    let length = min(size, RollbackJournal.SuperJournal.longestEnd)
    let end = try journal.read(count: Int(length), at: size - length)
    guard let name = RollbackJournal.SuperJournal.name(atEnd: end.span) else { return nil }
    let offset = size - min(size, RollbackJournal.SuperJournal.recordSize(name: name))
    let exists = RollbackJournal.SuperJournal.exists(name, beside: directory)
    return (exists ? .uncommitted(superJournal: name) : .undecided(superJournal: name), offset)
  }
}

extension RollbackJournal.SuperJournal {
  /// Whether the file exists at its path, or beside the database: its path can be that in an app's
  /// sandbox or on another device. The name has random digits.
  static func exists(_ path: ByteString, beside directory: borrowing Directory) -> Bool {
    guard let name = path.lastComponent, name.nameFault == nil else { return false }
    if isFile(name, in: directory) { return true }
    guard path.isAbsolute, !path.hasNUL, let above = try? Directory.open(path: path.parent) else {
      return false
    }
    return isFile(name, in: above)
  }

  private static func isFile(_ name: ByteString, in directory: borrowing Directory) -> Bool {
    ((try? directory.statusIfPresent(name)) ?? nil)?.kind == .file
  }
}

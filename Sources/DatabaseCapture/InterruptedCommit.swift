package import SystemIO

/// A transaction over several attached databases that was interrupted, by the journal of one of
/// them (fileformat2, section 3; pager.c, pager_playback).
///
/// The journal ends with the absolute path of a super-journal, which is deleted to commit. While
/// that file exists, SQLite rolls the transaction back; otherwise it takes it as committed and
/// deletes the journal. A copy of the database elsewhere, or without that file, would keep the
/// pages of a transaction that was not committed, and would be damaged.
package enum InterruptedCommit: Hashable, Sendable {
  /// The super-journal exists: the transaction was not committed in any of the databases. The
  /// journal is stored without its name, so that it rolls back this database wherever it is opened.
  case uncommitted(superJournal: ByteString)
  /// The path of the super-journal is in the database's own directory, and it is not there: the
  /// transaction was committed, and SQLite would delete the journal. It is stored empty, so that it
  /// changes nothing wherever this database is opened.
  case committed(superJournal: ByteString)
  /// The super-journal was not found, and its path is in another directory. The transaction was
  /// committed if it does not exist, but it may be at a path that only the app sees, or the files
  /// are a copy of the app's.
  case undecided(superJournal: ByteString)

  /// Whether a copy is consistent.
  package var isDecided: Bool { if case .undecided = self { false } else { true } }
}

extension InterruptedCommit {
  /// Returns the transaction that a journal belongs to, and the offset at which a copy of the
  /// journal has to end; nil if the journal names no super-journal. Without the record with that
  /// name it rolls back an uncommitted transaction by itself, and an empty one is of no effect.
  package static func find(
    in journal: borrowing Descriptor, size: UInt64, beside directory: borrowing Directory
  ) throws(SystemError) -> (commit: InterruptedCommit, offset: UInt64)? {
    let magic = RollbackJournal.magic
    guard try journal.read(count: magic.count, at: 0) == magic else { return nil }
    let length = min(size, RollbackJournal.SuperJournal.longestEnd)
    let end = try journal.read(count: Int(length), at: size - length)
    guard let name = RollbackJournal.SuperJournal.name(atEnd: end.span) else { return nil }
    switch RollbackJournal.SuperJournal.presence(of: name, beside: directory) {
    case .present:
      let offset = size - min(size, RollbackJournal.SuperJournal.recordSize(name: name))
      return (.uncommitted(superJournal: name), offset)
    case .gone: return (.committed(superJournal: name), 0)
    case .unknown: return (.undecided(superJournal: name), size)
    }
  }
}

extension RollbackJournal.SuperJournal {
  /// Whether a super-journal exists.
  enum Presence {
    case present
    /// It does not exist at its path, by which this process reaches the database's own directory.
    case gone
    case unknown
  }

  /// Looks for the file at its path, and beside the database: its path can be that in an app's
  /// sandbox or on another device. The name has random digits.
  static func presence(of path: ByteString, beside directory: borrowing Directory) -> Presence {
    guard let name = path.lastComponent, name.nameFault == nil else { return .unknown }
    let beside = presence(ofFile: name, in: directory)
    guard beside != .present, path.isAbsolute, !path.hasNUL,
      let above = try? Directory.open(path: path.parent)
    else { return beside == .present ? .present : .unknown }
    if let named = try? above.status(), let own = try? directory.status(),
      named.identity == own.identity
    {
      return beside
    }
    return presence(ofFile: name, in: above) == .present ? .present : .unknown
  }

  /// SQLite treats an empty file as missing, because a crash may leave one in place of a deleted
  /// file (os_unix.c, unixAccess).
  private static func presence(
    ofFile name: ByteString, in directory: borrowing Directory
  ) -> Presence {
    do throws(SystemError) {
      guard let status = try directory.statusIfPresent(name) else { return .gone }
      guard status.kind == .file else { return .unknown }
      return status.size > 0 ? .present : .gone
    } catch { return .unknown }
  }
}

internal import DatabaseCapture
internal import SystemIO

/// The log or the journal beside Manifest.db, with the pages that are not in the database.
///
/// A program that has a backup's database open, or was interrupted, leaves transactions there, and
/// SQLite merges them when it opens the database. Here, the backup is only read: the log is copied
/// into an unnamed file, so that no other program can change it after it was verified.
final class ManifestLog {
  private let overlay: PageOverlay
  private let copy: Descriptor

  /// A database before or after the pages of a log replace its own.
  struct Base {
    let size: UInt64
    /// The page size in bytes; nil if the header is damaged.
    let pageSize: Int?
  }

  /// The maximum size of a log or journal in bytes. Programs merge a log far more often.
  private static let sizeLimit: UInt64 = 1 << 30
  /// The size in bytes of a write-ahead log's header, which has no effect by itself.
  private static let headerSize: UInt64 = 32

  private init(_ overlay: PageOverlay, in copy: consuming Descriptor) {
    self.overlay = overlay
    self.copy = copy
  }

  /// The database with the pages of this log.
  var result: Base { Base(size: overlay.size, pageSize: overlay.pageSize) }

  /// Returns the name of the log or journal.
  static func name(_ member: DatabaseMember) -> ByteString {
    DatabaseUnit(MobileSyncBackup.database).name(of: member)
  }

  /// Reads and verifies a log or journal as SQLite does; nil if it has no effect.
  ///
  /// - Throws: the reason why it cannot be merged.
  static func read(
    _ member: DatabaseMember, over base: Base, in directory: borrowing Directory
  ) throws(ManifestFault) -> ManifestLog? {
    guard let file = try open(member, in: directory) else { return nil }
    do {
      let copy = try PrivateCopy.make(of: file, limit: sizeLimit)
      let size = try copy.status().size
      let found =
        member == .journal
        ? try pages(of: copy, by: RollbackJournal(size: size, databasePageSize: base.pageSize))
        : try pages(of: copy, by: WriteAheadLog(size: size))
      guard let overlay = found else {
        // A journal without records undoes nothing, but a log is written with its transactions.
        if member == .journal { return nil }
        throw ManifestFault(reason: "it has no complete transaction")
      }
      // A journal may undo a change of the page size, but a log never contains such a change.
      if member == .log, let own = base.pageSize, own != overlay.pageSize {
        throw LogRefusal.otherPageSize(log: overlay.pageSize, database: own)
      }
      try overlay.requireFit(over: base.size)
      guard overlay.size > 0 else { throw ManifestFault(reason: "it would empty the database") }
      return ManifestLog(overlay, in: copy)
    } catch let refusal as LogRefusal {
      throw ManifestFault(reason: refusal.reason)
    } catch let error as SystemError {
      throw ManifestFault(error)
    } catch {
      throw error as? ManifestFault ?? ManifestFault(reason: "\(error)")
    }
  }

  /// Opens a log or journal; nil if there is none or if its first bytes show that it has no effect.
  static func open(
    _ member: DatabaseMember, in directory: borrowing Directory
  ) throws(ManifestFault) -> Descriptor? {
    let name = name(member)
    do throws(SystemError) {
      guard let status = try directory.statusIfPresent(name) else { return nil }
      if status.kind == .file {
        // Programs leave a log empty or with its header, and a journal with a header of zeros.
        if member == .log, status.size <= headerSize { return nil }
        let file = try directory.file(name)
        if member == .journal, try file.read(count: 1, at: 0).first ?? 0 == 0 { return nil }
        return file
      }
    } catch { throw ManifestFault(error) }
    throw ManifestFault(reason: "it is not a file")
  }

  private static func pages(
    of log: borrowing Descriptor, by parser: some LogParser
  ) throws -> PageOverlay? {
    var (parser, buffer): (_, [UInt8]) = (parser, [])
    while let range = parser.next {
      try log.read(count: range.count, at: range.lowerBound, into: &buffer)
      try parser.parse(buffer.span)
    }
    return parser.overlay()
  }

  /// Writes the pages into a database and sets its size.
  func merge(into database: borrowing Descriptor) throws(SystemError) {
    try database.truncate(to: overlay.size)
    var buffer: [UInt8] = []
    for page in overlay.pages {
      try copy.read(count: overlay.pageSize, at: page.offset, into: &buffer)
      try database.write(buffer, at: UInt64(page.number - 1) * UInt64(overlay.pageSize))
    }
  }
}

/// Unnamed copies of a backup's files, which only this user can read.
enum PrivateCopy {
  /// The number of bytes that are copied at once.
  private static let portion = 1 << 20

  /// Copies a file.
  static func make(
    of file: borrowing Descriptor, limit: UInt64 = .max
  ) throws(ManifestFault) -> Descriptor {
    var buffer: [UInt8] = []
    var size: UInt64 = 0
    do throws(SystemError) {
      let copy = try TemporaryFile.make()
      while true {
        try file.read(count: portion, at: size, into: &buffer)
        if buffer.isEmpty { return copy }
        try copy.write(buffer)
        size += UInt64(buffer.count)
        if size > limit { break }
      }
    } catch { throw ManifestFault(error) }
    throw ManifestFault(reason: "it has more than \(limit) bytes")
  }
}

extension MobileSyncBackup {
  /// Returns a copy of the plain database with the transactions of the journal and the log beside
  /// it; nil if they have no effect. A journal or log that cannot be merged is reported.
  ///
  /// As in SQLite, the journal first undoes an interrupted transaction, then the log adds pages.
  func mergedDatabase(
    _ file: borrowing Descriptor, skipping skipped: inout SkippedEntries
  ) throws(ManifestFault) -> Descriptor? {
    var base = try Self.base(of: file)
    // SQLite treats a log next to an empty database as left over from another database.
    guard base.size > 0 else { return nil }
    var logs: [ManifestLog] = []
    for member in [DatabaseMember.journal, .log] {
      do throws(ManifestFault) {
        guard let log = try ManifestLog.read(member, over: base, in: directory) else { continue }
        logs.append(log)
        base = log.result
      } catch { Self.report(error.reason, of: member, in: &skipped) }
    }
    guard !logs.isEmpty else { return nil }
    let copy = try PrivateCopy.make(of: file)
    do throws(SystemError) {
      for log in logs { try log.merge(into: copy) }
      var header = try copy.read(count: SQLiteDatabase.headerSize, at: 0)
      SQLiteDatabase.clearLogMode(header: &header)
      try copy.write(header, at: 0)
    } catch { throw ManifestFault(error) }
    return copy
  }

  private static func base(
    of file: borrowing Descriptor
  ) throws(ManifestFault) -> ManifestLog.Base {
    do throws(SystemError) {
      let head = try file.read(count: DatabaseUnit.headSize, at: 0)
      return ManifestLog.Base(
        size: try file.status().size, pageSize: DatabaseUnit.pageSize(head: head.span))
    } catch { throw ManifestFault(error) }
  }

  /// Reports the log and the journal beside an encrypted database. No program is known to write one
  /// there, so it is not defined whether, and with which key, it would be encrypted.
  func reportLogsOfEncryptedDatabase(in skipped: inout SkippedEntries) {
    for member in [DatabaseMember.journal, .log] {
      do throws(ManifestFault) {
        guard try ManifestLog.open(member, in: directory) != nil else { continue }
        Self.report("it is beside an encrypted database", of: member, in: &skipped)
      } catch { Self.report(error.reason, of: member, in: &skipped) }
    }
  }

  private static func report(
    _ reason: String, of member: DatabaseMember, in skipped: inout SkippedEntries
  ) {
    skipped.append(
      path: ManifestLog.name(member), reason: "it was not read, so files may be missing: \(reason)")
  }
}

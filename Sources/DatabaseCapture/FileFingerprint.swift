internal import SystemIO

/// The state of a unit without its content. Two equal fingerprints show that it did not change in
/// between.
struct FileFingerprint {
  let database: State
  /// The log's header, or nil if there is no log. A log that was reset has a different salt.
  let logBeginning: [UInt8]?
  let logSize: UInt64
  let journal: Journal
  /// The time at which the journal was last written to, or nil if there is none.
  private let journalModified: Timestamp?

  enum Journal {
    case absent
    /// The journal of a transaction that has ended.
    case ended
    /// The journal of a transaction that is in progress or was interrupted.
    case live
    /// Like `live`, but of a transaction over several databases, which this journal alone cannot
    /// undo.
    case liveForSeveral
  }

  init(at unit: DatabaseUnit, in directory: borrowing Directory) throws(SystemError) {
    database = State(try directory.status(unit.name))
    if let log = try directory.regularFile(unit.name(of: .log)) {
      logBeginning = try log.read(count: Self.logHeader, at: 0)
      logSize = try log.status().size
    } else {
      (logBeginning, logSize) = (nil, 0)
    }
    (journal, journalModified) = try Self.journal(of: unit, in: directory)
  }

  /// The header size in bytes: magic, version, page size, sequence, two salts, two checksums
  /// (fileformat2, section 4.1).
  private static let logHeader = 32
  /// The magic, which also ends a journal that names a super-journal.
  private static let journalMagic = RollbackJournal.magic

  private static func journal(
    of unit: DatabaseUnit, in directory: borrowing Directory
  ) throws(SystemError) -> (Journal, Timestamp?) {
    guard let file = try directory.regularFile(unit.name(of: .journal)) else {
      return (.absent, nil)
    }
    let count = journalMagic.count
    let status = try file.status()
    guard try file.read(count: count, at: 0) == journalMagic else {
      return (.ended, status.modified)
    }
    let end = try file.read(count: count, at: status.size - min(status.size, UInt64(count)))
    let isOfSeveral = status.size > count && end == journalMagic
    return (isOfSeveral ? .liveForSeveral : .live, status.modified)
  }

  /// Returns the fingerprint. If the database was written to within the step of its clock, a
  /// further write might not change the times: waits and compares again, and returns nil if it
  /// changed. Returns nil at once if it would wait for seconds: the locks are quicker.
  static func whenStable(
    at unit: DatabaseUnit, in directory: borrowing Directory
  ) throws(SystemError) -> FileFingerprint? {
    let look = try FileFingerprint(at: unit, in: directory)
    guard look.database.hasWholeSeconds else { return try look.whenStable(at: unit, in: directory) }
    return look.age < State.coarseStep ? nil : look
  }

  /// Returns the fingerprint of a database that is locked: writers that honour the locks do not
  /// change it, so nothing waits for seconds.
  static func whenLocked(
    at unit: DatabaseUnit, in directory: borrowing Directory
  ) throws(SystemError) -> FileFingerprint? {
    let look = try FileFingerprint(at: unit, in: directory)
    return look.database.hasWholeSeconds ? look : try look.whenStable(at: unit, in: directory)
  }

  private func whenStable(
    at unit: DatabaseUnit, in directory: borrowing Directory
  ) throws(SystemError) -> FileFingerprint? {
    let age = Host.now().since(database.modified)
    guard abs(age) < State.fineStep else { return self }
    Host.pause(seconds: State.fineStep - age)
    let again = try FileFingerprint(at: unit, in: directory)
    return again.database == database ? again : nil
  }

  /// The seconds between the last write to the database and now, even if the write is later.
  private var age: Double { abs(Host.now().since(database.modified)) }

  /// The existing members, in reading order.
  var members: [DatabaseMember] {
    DatabaseUnit.captured.filter { member in
      switch member {
      case .database: true
      case .log: logBeginning != nil
      case .journal: journal != .absent
      case .sharedMemory: false
      }
    }
  }

  /// Whether the file is not within a transaction that only its writer's memory could undo. With
  /// `journal_mode` MEMORY or OFF there is no journal on disk, and a writer may pause for any time.
  /// In a write-ahead database, uncommitted pages are in the log.
  func isOfNoTransaction(
    _ unit: DatabaseUnit, in directory: borrowing Directory
  ) throws(SystemError) -> Bool {
    if journal == .live || logBeginning != nil || journalEndedLast { return true }
    return try !DatabaseCapture.Locks.areExclusive(of: unit, in: directory)
  }

  /// Whether the last transaction that wrote to the database used the journal, and ended: a journal
  /// that stays (TRUNCATE, PERSIST, and DELETE in exclusive mode) is always written to after the
  /// database. An older one was left by a connection in another mode.
  private var journalEndedLast: Bool {
    guard journal == .ended, let journalModified else { return false }
    return journalModified >= database.modified
  }

  /// Whether the database file did not change until a later fingerprint and the log was only
  /// appended to, after the `readOfLog` bytes that were read.
  func isUnchanged(until later: FileFingerprint, readOfLog: UInt64) -> Bool {
    database == later.database && logBeginning == later.logBeginning
      && later.logSize >= readOfLog
  }
}

extension FileFingerprint {
  /// The status that shows whether a file's content was changed or the file was replaced.
  struct State: Equatable {
    let identity: FileIdentity
    let size: UInt64
    let modified: Timestamp
    let changed: Timestamp

    init(_ status: FileStatus) {
      identity = status.identity
      size = status.size
      modified = status.modified
      changed = status.changed
    }

    /// The interval in seconds within which two writes may have the same times, on file systems
    /// that record nanoseconds: more than a tick of the kernel's clock.
    static let fineStep = 0.02
    /// The same on file systems that record whole seconds: FAT counts every other second.
    static let coarseStep = 2.02

    /// Whether the file system seems to record whole seconds, as do ext4 with inodes of 128 bytes,
    /// ext3, HFS+ and FAT. A program may set such a modification time, but not a change time.
    var hasWholeSeconds: Bool { modified.nanoseconds == 0 && changed.nanoseconds == 0 }
  }
}

extension Directory {
  /// Opens a child for reading, or returns nil if it does not exist or is not a regular file. The
  /// name of a log or a journal can be too long to exist, or to be stored.
  borrowing func regularFile(_ name: ByteString) throws(SystemError) -> Descriptor? {
    if name.count > Int(UInt8.max) { return nil }
    do {
      let file = try fileUntouched(name)
      guard try file.status().kind == .file else { return nil }
      return consume file
    } catch {
      if error.isMissing || error.isLink || error.isNameTooLong { return nil }
      // A socket cannot be opened.
      if let status = try? statusIfPresent(name), status.kind != .file { return nil }
      throw error
    }
  }
}

internal import SystemIO

/// What is seen of a unit without reading it: two looks tell whether it held still between them.
struct FileFingerprint {
  let database: Stand
  /// The log's header, as far as there is one; nil when there is no log. A log that is started anew
  /// has another salt in it.
  let logBeginning: [UInt8]?
  let logSize: UInt64
  let journal: Journal

  enum Journal {
    case absent
    /// Left behind by a transaction that has ended.
    case ended
    /// Of a transaction that goes on, or was broken off.
    case live
    /// The same, of a transaction over several databases, which this journal alone does not undo.
    case liveForSeveral
  }

  init(at unit: DatabaseUnit, in directory: borrowing Directory) throws(SystemError) {
    database = Stand(try directory.status(unit.name))
    if let log = try directory.regularFile(unit.name(of: .log)) {
      logBeginning = try log.read(count: Self.logHeader, at: 0)
      logSize = try log.status().size
    } else {
      (logBeginning, logSize) = (nil, 0)
    }
    journal = try Self.journal(of: unit, in: directory)
  }

  /// fileformat2, section 4.1: magic, version, page size, sequence, two salts, two checksums.
  private static let logHeader = 32
  /// After the name of a super-journal the same bytes stand at the end.
  private static let journalMagic = RollbackJournal.magic

  private static func journal(
    of unit: DatabaseUnit, in directory: borrowing Directory
  ) throws(SystemError) -> Journal {
    guard let file = try directory.regularFile(unit.name(of: .journal)) else { return .absent }
    let count = journalMagic.count
    guard try file.read(count: count, at: 0) == journalMagic else { return .ended }
    let size = try file.status().size
    let end = try file.read(count: count, at: size - min(size, UInt64(count)))
    return size > count && end == journalMagic ? .liveForSeveral : .live
  }

  /// Two writes within this many seconds may leave the same time of modification.
  private static let clockStep = 0.02

  /// Looks, and once more if the database was written to just now, as a further write might not show
  /// then; nil if it was.
  static func whenStable(
    at unit: DatabaseUnit, in directory: borrowing Directory
  ) throws(SystemError) -> FileFingerprint? {
    let look = try FileFingerprint(at: unit, in: directory)
    let age = Host.now().since(look.database.modified)
    guard abs(age) < clockStep else { return look }
    Host.pause(seconds: clockStep - age)
    let again = try FileFingerprint(at: unit, in: directory)
    return again.database == look.database ? again : nil
  }

  /// The members that are there, in the order in which they are read.
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

  /// How long a writer is expected to pause at most between two writes of one transaction, in seconds.
  /// One that never lets go of its locks may have ended its last transaction long ago.
  private static let longestPause = 10.0

  /// Whether the file is in no transaction's midst that only its writer's memory could undo: with
  /// `journal_mode` MEMORY or OFF there is no journal on the disk, and a writer may pause for longer than
  /// anybody looks. In a write-ahead database the log has what a transaction writes.
  func isOfNoTransaction(
    _ unit: DatabaseUnit, in directory: borrowing Directory
  ) throws(SystemError) -> Bool {
    if journal == .live || logBeginning != nil { return true }
    if Host.now().since(database.modified) > Self.longestPause { return true }
    return try !DatabaseLocks.areReserved(of: unit, in: directory)
  }

  /// Whether the database's file stood still and the log was only appended to until a later look,
  /// behind so many bytes of it as were read.
  func stands(until later: FileFingerprint, readOfLog: UInt64) -> Bool {
    database == later.database && logBeginning == later.logBeginning
      && later.logSize >= readOfLog
  }
}

/// What tells that a file's content was changed, or that it was replaced.
struct Stand: Equatable {
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
}

extension Directory {
  /// Opens a child for reading if there is one and it is a regular file.
  borrowing func regularFile(_ name: ByteString) throws(SystemError) -> Descriptor? {
    do {
      let file = try fileUntouched(name)
      guard try file.status().kind == .file else { return nil }
      return consume file
    } catch {
      if error.isMissing || error.isLink { return nil }
      throw error
    }
  }
}

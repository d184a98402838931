internal import SystemIO

/// The locks that keep SQLite connections from changing a database file and from resetting its log.
/// They are released with this value.
///
/// They follow SQLite's rules (os_unix.c, walformat, section 2.3): a reader takes the pending byte,
/// then the shared range, and releases the pending byte, so that a waiting writer is not starved.
/// In the log's index the first read lock keeps a checkpoint from writing to the database, and the
/// second keeps a writer from resetting the log. The byte that marks users of the index is never
/// taken: a process that finds it free rebuilds the index.
struct DatabaseLocks: ~Copyable {
  private let database: Descriptor
  private var sharedMemory: Descriptor?

  private static let pending: Range<UInt64> = 0x4000_0000..<0x4000_0001
  private static let reserved: Range<UInt64> = 0x4000_0001..<0x4000_0002
  private static let shared: Range<UInt64> = 0x4000_0002..<0x4000_0200
  private static let firstReaders: Range<UInt64> = 123..<125
  private static let users: Range<UInt64> = 128..<129

  /// Takes all locks without waiting. Returns nil if another process holds one of them.
  static func take(
    _ unit: DatabaseUnit, in directory: borrowing Directory
  ) throws(SystemError) -> DatabaseLocks? {
    // From here on the locks are released on every exit.
    var locks = DatabaseLocks(database: try directory.fileUntouched(unit.name), sharedMemory: nil)
    guard try locks.database.lockShared(pending) else { return nil }
    let isShared = try locks.database.lockShared(shared)
    try locks.database.unlock(pending)
    guard isShared else { return nil }
    guard let index = try directory.regularFile(unit.name(of: .sharedMemory)),
      try index.isLockedElsewhere(users)
    else { return locks }
    guard try index.lockShared(firstReaders) else { return nil }
    locks.sharedMemory = consume index
    return locks
  }

  /// Whether a new writer has to wait for these locks. In a write-ahead database that other
  /// processes use, they only prevent checkpoints.
  var stopWriters: Bool {
    switch sharedMemory {
    case .some: false
    case nil: true
    }
  }

  /// Whether a connection is in a write transaction in a rollback mode. It holds the reserved byte
  /// from its first change to its commit, which is the only sign if its journal is in memory or
  /// disabled.
  static func areReserved(
    of unit: DatabaseUnit, in directory: borrowing Directory
  ) throws(SystemError) -> Bool {
    try directory.regularFile(unit.name)?.isLockedElsewhere(reserved) ?? false
  }

  /// Releases the locks.
  consuming func release() {}

  deinit {
    database.unlockAll()
    switch sharedMemory {
    case .some(let index): index.unlockAll()
    case nil: break
    }
  }

  /// Whether the locked file is the one with this status.
  borrowing func hold(_ stand: FileState) throws(SystemError) -> Bool {
    try database.status().identity == stand.identity
  }
}

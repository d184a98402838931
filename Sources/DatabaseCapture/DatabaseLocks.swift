internal import SystemIO

/// The locks that keep SQLite's connections from changing a database's file and from starting its log
/// anew; they are gone with this value.
///
/// SQLite's own rules (os_unix.c, walformat, section 2.3): a reader takes the pending byte, then the
/// shared range, and lets the pending byte go, so that a writer who waits there is not starved. In
/// the log's index the first read lock stops a checkpoint from writing to the database, the second
/// stops a writer from starting the log anew. The byte by which connections say that they use the
/// index is never taken: whoever finds it free makes the index anew.
struct DatabaseLocks: ~Copyable {
  private let database: Descriptor
  private var sharedMemory: Descriptor?

  private static let pending: Range<UInt64> = 0x4000_0000..<0x4000_0001
  private static let reserved: Range<UInt64> = 0x4000_0001..<0x4000_0002
  private static let shared: Range<UInt64> = 0x4000_0002..<0x4000_0200
  private static let firstReaders: Range<UInt64> = 123..<125
  private static let users: Range<UInt64> = 128..<129

  /// Takes them all, or nil when someone else holds one; does not wait.
  static func take(
    _ unit: DatabaseUnit, in directory: borrowing Directory
  ) throws(SystemError) -> DatabaseLocks? {
    // From here on what is taken is given back, however this ends.
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

  /// Whether a writer that comes has to wait for these locks: but for a write-ahead database that others
  /// use, of which they stop checkpoints alone.
  var stopWriters: Bool {
    switch sharedMemory {
    case .some: false
    case nil: true
    }
  }

  /// Whether a connection is in a transaction that writes in a rollback mode: it holds the reserved byte
  /// from its first change to its commit. With its journal in memory, or without one, nothing else tells.
  static func areReserved(
    of unit: DatabaseUnit, in directory: borrowing Directory
  ) throws(SystemError) -> Bool {
    try directory.regularFile(unit.name)?.isLockedElsewhere(reserved) ?? false
  }

  /// Gives the locks back.
  consuming func release() {}

  deinit {
    database.unlockAll()
    switch sharedMemory {
    case .some(let index): index.unlockAll()
    case nil: break
    }
  }

  /// Whether the locked file is the one that was looked at.
  borrowing func hold(_ stand: Stand) throws(SystemError) -> Bool {
    try database.status().identity == stand.identity
  }
}

internal import SystemIO

extension DatabaseCapture {
  /// The pause before the locks are requested again, in seconds.
  private static let pause = 0.002

  enum LockedCapture {
    case done([CaptureResult.Member], InterruptedCommit?)
    case failed(CaptureResult.Conflict)
  }

  private enum Attempt {
    case done([CaptureResult.Member], InterruptedCommit?)
    case copied([MemberReader], InterruptedCommit?)
    case busy
  }

  /// Captures the unit under locks, which are released before this returns.
  static func captureLocked(
    _ unit: DatabaseUnit, in directory: borrowing Directory, spool: borrowing Directory,
    until deadline: Double, within limits: LockLimits, _ store: (MemberReader) throws -> Void
  ) throws -> LockedCapture {
    do {
      while true {
        switch try attempt(unit, in: directory, spool: spool, within: limits, store) {
        case .done(let members, let commit): return .done(members, commit)
        case .copied(let readers, let commit):
          return .done(try readers.map { try storeMember($0, store) }, commit)
        case .busy: if Host.monotonicSeconds() >= deadline { return .failed(.locked) }
        }
        Host.pause(seconds: pause)
      }
    } catch let error as CopyFailure {
      return .failed(.failed(error.cause))
    } catch let error as MemberReader.TooLate {
      return .failed(.tooLarge(seconds: error.limit))
    }
  }

  /// Captures the unit once under locks. The unit is compared before and after as well: if no
  /// connection uses the log's index, nothing prevents a new connection from running a checkpoint,
  /// and an app may lock in another way. A journal may appear and disappear: it undoes nothing in a
  /// database that no process writes to, unless it existed before the locks.
  ///
  /// Copies are stored after the locks are released. If a member has no copy, all members are
  /// stored under the locks: none of them is ever read without a copy or the locks.
  private static func attempt(
    _ unit: DatabaseUnit, in directory: borrowing Directory, spool: borrowing Directory,
    within limits: LockLimits, _ store: (MemberReader) throws -> Void
  ) throws -> Attempt {
    guard let locks = try copying({ try Locks.acquire(unit, in: directory) }) else {
      return .busy
    }
    let begun = Host.monotonicSeconds()
    guard let before = try copying({ try FileFingerprint.whenLocked(at: unit, in: directory) }),
      try copying({ try locks.isLocked(before.database) })
    else { return .busy }
    var readers: [MemberReader] = []
    var commit: InterruptedCommit?
    for member in before.members {
      guard let reader = try copying({ try MemberReader(member, of: unit, in: directory) }) else {
        continue
      }
      readers.append(reader)
      if let found = try copying({ try reader.settleCommit(beside: directory) }) { commit = found }
      if try copying({ try reader.makeClone(in: spool) }) || !locks.stopWriters { continue }
      try copying { try reader.makeCopy(in: spool, since: begun, limit: limits.blocking) }
    }
    var members: [CaptureResult.Member]?
    if readers.contains(where: { !$0.hasCopy }) {
      members = try readers.map { reader in
        reader.end(after: limits.passive, since: begun)
        return try storeMember(reader, store)
      }
    }
    let after = try copying { try FileFingerprint(at: unit, in: directory) }
    locks.release()
    guard before.isUnchanged(until: after, readOfLog: readers.readOfLog) else { return .busy }
    return members.map { .done($0, commit) } ?? .copied(readers, commit)
  }

  /// Wraps system errors as copy errors, which do not occur with the last method.
  private static func copying<Result: ~Copyable>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as SystemError {
      throw CopyFailure(cause: error)
    }
  }
}

extension [MemberReader] {
  /// The number of log bytes that were read.
  fileprivate var readOfLog: UInt64 { first { $0.member == .log }?.status.size ?? 0 }
}

extension DatabaseCapture {
  /// The maximum times in seconds for which locks on a database are held.
  struct LockLimits {
    /// The limit if writers have to wait, in the rollback modes, for copying only. Some apps do not
    /// wait long.
    var blocking = 2.0
    /// The limit if no process has to wait: in a write-ahead database that other processes use, the
    /// locks only prevent checkpoints and log resets, so that the log grows. Long enough for
    /// reading, but bounded.
    var passive = 600.0
  }

  /// A failure to make a copy under locks.
  private struct CopyFailure: Error {
    let cause: SystemError
  }
}

extension DatabaseCapture {
  /// The locks that keep SQLite connections from changing a database file and from resetting its
  /// log. They are released with this value.
  ///
  /// They follow SQLite's rules (os_unix.c, walformat, section 2.3): a reader takes the pending
  /// byte, then the shared range, and releases the pending byte, so that a waiting writer is not
  /// starved. In the log's index the first read lock keeps a checkpoint from writing to the
  /// database, and the second keeps a writer from resetting the log. The byte that marks users of
  /// the index is never taken: a process that finds it free rebuilds the index.
  struct Locks: ~Copyable {
    private let database: Descriptor
    private var sharedMemory: Descriptor?

    private static let pending: Range<UInt64> = 0x4000_0000..<0x4000_0001
    private static let shared: Range<UInt64> = 0x4000_0002..<0x4000_0200
    private static let firstReaders: Range<UInt64> = 123..<125
    private static let users: Range<UInt64> = 128..<129

    /// Takes all locks without waiting. Returns nil if another process holds one of them.
    static func acquire(
      _ unit: DatabaseUnit, in directory: borrowing Directory
    ) throws(SystemError) -> Locks? {
      // From here on the locks are released on every exit.
      var locks = Locks(database: try directory.fileUntouched(unit.name), sharedMemory: nil)
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

    /// Whether a connection may be writing to the database file in a rollback mode. It holds the
    /// shared range exclusively from its first write to the file until its commit, which is the
    /// only sign if its journal is in memory or disabled; in exclusive mode it never releases it.
    /// False on a volume without such locks, where no connection can hold them.
    static func areExclusive(
      of unit: DatabaseUnit, in directory: borrowing Directory
    ) throws(SystemError) -> Bool {
      do {
        return try directory.regularFile(unit.name)?.isLockedForWritingElsewhere(shared) ?? false
      } catch {
        if error.isUnsupported || error.hasNoLocks { return false }
        throw error
      }
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
    borrowing func isLocked(_ state: FileFingerprint.State) throws(SystemError) -> Bool {
      try database.status().identity == state.identity
    }
  }
}

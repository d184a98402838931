// Databases in use, read as one unit, without SQLite (docs/design.md, Databases).
//
// A reader of SQLite's own would hold up apps that do not wait, leave files behind, and still not
// keep a writer from starting the log anew during a copy. So a unit is read as plain files, in one of
// three ways: while it holds still, which is seen by looking before and after; else under the locks
// that SQLite's connections heed, into a copy, so that they are held for reading alone; else as it
// stands. The first two give what a crash of the machine could have left at that moment, with every
// transaction that was committed before: SQLite recovers it.
//
// Not guaranteed: anything for apps that write by mapped memory or lock in ways of their own and
// touch no time of modification, and for several attached databases as one.

public import SystemIO

/// Captures databases that others may be writing to.
public enum DatabaseCapture {
  /// How often a unit is watched.
  private static let watchings = 3
  /// How long locks are waited for when the unit may be put off, in seconds.
  private static let shortWait = 0.2

  /// Reads a unit that lies in `folder`; gives nil when it is busy and was put off.
  ///
  /// `store` is called with each member's reader in turn, and again from the first member on when
  /// the unit did not hold still: only the last call for each member in the result counts, and none
  /// when there is no result. It passes on what the reader throws. Copies are made in `spool`, best
  /// a directory on the same volume: reflinks need neither time nor space.
  ///
  /// Throws what `store` throws, and `SystemError` when a member cannot be read.
  public static func capture(
    _ unit: DatabaseUnit, in directory: borrowing Directory, spool: borrowing Directory,
    whenBusy: WhenBusy, store: (MemberReader) throws -> Void
  ) throws -> CaptureResult? {
    try capture(
      unit, in: directory, spool: spool, whenBusy: whenBusy, within: LockLimits(), store: store)
  }

  /// The same, with other limits on how long locks are held.
  static func capture(
    _ unit: DatabaseUnit, in directory: borrowing Directory, spool: borrowing Directory,
    whenBusy: WhenBusy, within limits: LockLimits, store: (MemberReader) throws -> Void
  ) throws -> CaptureResult? {
    for _ in 1...watchings {
      if let members = try watch(unit, in: directory, store) {
        return CaptureResult(method: .watching, members: members)
      }
    }
    let obstacle: CaptureConflict
    let locked = try captureLocked(
      unit, in: directory, spool: spool, until: deadline(whenBusy), within: limits, store)
    switch locked {
    case .done(let members): return CaptureResult(method: .locks, members: members)
    case .failed(let found): obstacle = found
    }
    if case .deferred = whenBusy { return nil }
    let members = try readAsItStands(unit, in: directory, store)
    return CaptureResult(method: .asItStood, members: members, obstacle: obstacle)
  }

  private static func deadline(_ whenBusy: WhenBusy) -> Double {
    switch whenBusy {
    case .deferred: Host.monotonicSeconds() + shortWait
    case .takeAsItStands(let deadline): deadline
    }
  }

  /// Has a member stored.
  static func take(
    _ reader: MemberReader, _ store: (MemberReader) throws -> Void
  ) throws -> CapturedMember {
    try store(reader)
    return CapturedMember(reader)
  }

  /// The last way: whatever is read.
  private static func readAsItStands(
    _ unit: DatabaseUnit, in directory: borrowing Directory, _ store: (MemberReader) throws -> Void
  ) throws -> [CapturedMember] {
    var members: [CapturedMember] = []
    for member in DatabaseUnit.captured {
      if let reader = try MemberReader(member, of: unit, in: directory) {
        members.append(try take(reader, store))
      }
    }
    return members
  }
}

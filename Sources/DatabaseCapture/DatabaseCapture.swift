// Captures databases in use, each with its companions as one unit, without SQLite (docs/design.md,
// Databases).
//
// A SQLite reader would block apps that do not wait, leave files behind, and still not keep a
// writer from resetting the log during a copy. A unit is therefore read as plain files, in one of
// three ways: while it does not change, which is verified by comparing it before and after;
// otherwise under the locks that SQLite connections respect, into a copy, so that the locks are
// held only for reading; otherwise without protection. The first two give a state that a crash of
// the machine at that moment could have left, with every transaction committed before. SQLite
// recovers it.
//
// Not guaranteed: consistency for apps that write through mapped memory or use their own locks
// without changing the modification time, and for several attached databases as one.

package import SystemIO

/// Captures databases that other processes may be writing to.
package enum DatabaseCapture {
  /// The number of attempts to read a unit while it does not change.
  private static let watchings = 3
  /// The time to wait for locks if the unit may be deferred, in seconds.
  private static let shortWait = 0.2

  /// Reads a unit in `directory`. Returns nil if it is busy and was deferred.
  ///
  /// `store` is called with the reader of each member in turn, and again from the first member if
  /// the unit changed. Only the last call for each member in the result counts, and none if there
  /// is no result. It must rethrow the errors of the reader. Copies are made in `spool`, preferably
  /// a directory on the same volume, where reflinks need neither time nor space.
  ///
  /// - Throws: any error of `store`, and `SystemError` if a member cannot be read.
  package static func capture(
    _ unit: DatabaseUnit, in directory: borrowing Directory, spool: borrowing Directory,
    whenBusy: WhenBusy, store: (MemberReader) throws -> Void
  ) throws -> CaptureResult? {
    try capture(
      unit, in: directory, spool: spool, whenBusy: whenBusy, within: LockLimits(), store: store)
  }

  /// Captures a unit with other limits on the time that locks are held.
  static func capture(
    _ unit: DatabaseUnit, in directory: borrowing Directory, spool: borrowing Directory,
    whenBusy: WhenBusy, within limits: LockLimits, store: (MemberReader) throws -> Void
  ) throws -> CaptureResult? {
    for _ in 1...watchings {
      if let members = try watch(unit, in: directory, store) {
        return CaptureResult(method: .watching, members: members)
      }
    }
    let conflict: CaptureConflict
    let locked = try captureLocked(
      unit, in: directory, spool: spool, until: deadline(whenBusy), within: limits, store)
    switch locked {
    case .done(let members): return CaptureResult(method: .locks, members: members)
    case .failed(let found): conflict = found
    }
    if case .deferred = whenBusy { return nil }
    let members = try readUnlocked(unit, in: directory, store)
    return CaptureResult(method: .unlocked, members: members, conflict: conflict)
  }

  private static func deadline(_ whenBusy: WhenBusy) -> Double {
    switch whenBusy {
    case .deferred: Host.monotonicSeconds() + shortWait
    case .takeUnlocked(let deadline): deadline
    }
  }

  /// Stores a member.
  static func take(
    _ reader: MemberReader, _ store: (MemberReader) throws -> Void
  ) throws -> CapturedMember {
    try store(reader)
    return CapturedMember(reader)
  }

  /// Reads the unit without protection.
  private static func readUnlocked(
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

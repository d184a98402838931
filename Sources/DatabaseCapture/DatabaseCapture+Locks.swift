internal import SystemIO

/// The maximum times for which locks on a database are held, in seconds.
struct LockLimits {
  /// The limit if writers have to wait, in the rollback modes, for copying only. Some apps do not
  /// wait long.
  var blocking = 2.0
  /// The limit if no process has to wait: in a write-ahead database that other processes use, the
  /// locks only prevent checkpoints and log resets, so that the log grows. Long enough for reading,
  /// but bounded.
  var passive = 600.0
}

extension DatabaseCapture {
  /// The pause before the locks are requested again, in seconds.
  private static let pause = 0.002

  enum LockedCapture {
    case done([CapturedMember])
    case failed(CaptureConflict)
  }

  private enum Attempt {
    case done([CapturedMember])
    case copied([MemberReader])
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
        case .done(let members): return .done(members)
        case .copied(let readers): return .done(try readers.map { try take($0, store) })
        case .busy: if Host.monotonicSeconds() >= deadline { return .failed(.locked) }
        }
        Host.pause(seconds: pause)
      }
    } catch let error as CopyFailure {
      return .failed(.failed(error.cause))
    } catch let error as TooLate {
      return .failed(.tooLarge(seconds: error.limit))
    }
  }

  /// Captures the unit once under locks. The unit is compared before and after as well: if no
  /// connection uses the log's index, nothing prevents a new connection from running a checkpoint,
  /// and an app may lock in another way. A journal may appear and disappear: it undoes nothing in a
  /// database that no process writes to, unless it existed before the locks.
  private static func attempt(
    _ unit: DatabaseUnit, in directory: borrowing Directory, spool: borrowing Directory,
    within limits: LockLimits, _ store: (MemberReader) throws -> Void
  ) throws -> Attempt {
    guard let locks = try copying({ try DatabaseLocks.take(unit, in: directory) }) else {
      return .busy
    }
    let begun = Host.monotonicSeconds()
    guard let before = try copying({ try FileFingerprint.whenStable(at: unit, in: directory) }),
      try copying({ try locks.hold(before.database) })
    else { return .busy }
    var (readers, members): ([MemberReader], [CapturedMember]) = ([], [])
    for member in before.members {
      guard let reader = try copying({ try MemberReader(member, of: unit, in: directory) }) else {
        continue
      }
      readers.append(reader)
      if try copying({ try reader.makeClone(in: spool) }) { continue }
      if locks.stopWriters {
        try copying { try reader.makeCopy(in: spool, since: begun, limit: limits.blocking) }
      } else {
        reader.end(after: limits.passive, since: begun)
        members.append(try take(reader, store))
      }
    }
    let after = try copying { try FileFingerprint(at: unit, in: directory) }
    let isStored = members.count == readers.count
    locks.release()
    guard before.stands(until: after, readOfLog: readers.readOfLog) else { return .busy }
    return isStored && !members.isEmpty ? .done(members) : .copied(readers)
  }

  /// Wraps system errors as copy errors, which the last method may not encounter.
  private static func copying<Result: ~Copyable>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as SystemError {
      throw CopyFailure(cause: error)
    }
  }
}

/// A failure to make a copy under locks.
private struct CopyFailure: Error {
  let cause: SystemError
}

/// A timeout: reading took longer than the locks may be held.
struct TooLate: Error {
  /// The limit in seconds.
  let limit: Double
}

extension [MemberReader] {
  /// The number of log bytes that were read.
  fileprivate var readOfLog: UInt64 { first { $0.member == .log }?.status.size ?? 0 }
}

internal import SystemIO

/// How long locks on a database are held at most, in seconds.
struct LockLimits {
  /// Where writers wait meanwhile: in the rollback modes, for copying alone. Some do not wait long.
  var blocking = 2.0
  /// Where nobody waits: in a write-ahead database that others use, the locks keep only checkpoints
  /// from the database and the log from being started again, so that the log grows. As long as
  /// reading takes, but not for ever.
  var passive = 600.0
}

extension DatabaseCapture {
  /// How long to wait before asking for the locks again, in seconds.
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

  /// Captures the unit under locks, which are given back before this returns.
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

  /// Looks before and after, too: when no connection uses the log's index, nothing keeps a new one
  /// from a checkpoint; and an app may lock in another way. A journal may come and go: it undoes
  /// nothing in a database that nobody writes to, unless it was there before the locks.
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

  /// Marks errors of the system as those of copying, which the last way may not meet.
  private static func copying<Result: ~Copyable>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as SystemError {
      throw CopyFailure(cause: error)
    }
  }
}

/// A copy under locks could not be made at all.
private struct CopyFailure: Error {
  let cause: SystemError
}

/// Reading took longer than locks may be held.
struct TooLate: Error {
  /// In seconds.
  let limit: Double
}

extension [MemberReader] {
  /// How many bytes of the log they read.
  fileprivate var readOfLog: UInt64 { first { $0.member == .log }?.status.size ?? 0 }
}

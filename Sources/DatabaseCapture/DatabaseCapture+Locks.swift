internal import SystemIO

/// A copy under locks could not be made at all.
struct CopyFailure: Error {
  let cause: SystemError
}

extension DatabaseCapture {
  /// How long locks are held at most, in seconds: apps wait meanwhile, and some do not wait long.
  static let longestHold = 2.0
  /// How long to wait before asking for the locks again, in seconds.
  private static let pause = 0.002

  /// Copies the unit under locks, which are given back before this returns; nil when others hold them
  /// until the deadline, or when copying takes longer than they may be held.
  static func copyLocked(
    _ unit: DatabaseUnit, in folder: borrowing Folder, to spool: borrowing Folder,
    until deadline: Double, holdingAtMost hold: Double
  ) throws -> [MemberReader]? {
    do {
      while true {
        switch try copyOnce(unit, in: folder, to: spool, holdingAtMost: hold) {
        case .done(let readers): return readers
        case .tooLate: return nil
        case .busy: if Host.monotonicSeconds() >= deadline { return nil }
        }
        Host.pause(seconds: pause)
      }
    } catch let error as SystemError {
      throw CopyFailure(cause: error)
    }
  }

  private enum Attempt {
    case done([MemberReader])
    case busy
    case tooLate
  }

  /// Looks before and after, too: when no connection uses the log's index, nothing keeps a new one
  /// from a checkpoint; and an app may lock in another way. A journal may come and go: it undoes
  /// nothing in a database that nobody writes to, unless it was there before the locks.
  private static func copyOnce(
    _ unit: DatabaseUnit, in folder: borrowing Folder, to spool: borrowing Folder,
    holdingAtMost hold: Double
  ) throws -> Attempt {
    guard let locks = try DatabaseLocks.take(unit, in: folder) else { return .busy }
    let deadline = Host.monotonicSeconds() + hold
    guard let before = try Look.whenSettled(at: unit, in: folder), try locks.hold(before.database)
    else { return .busy }
    var readers: [MemberReader] = []
    for member in before.members {
      guard let reader = try MemberReader(member, of: unit, in: folder) else { continue }
      guard try reader.makeCopy(in: spool, until: deadline) else { return .tooLate }
      readers.append(reader)
    }
    let after = try Look(at: unit, in: folder)
    locks.release()
    return before.stands(until: after, readOfLog: readers.readOfLog) ? .done(readers) : .busy
  }
}

extension [MemberReader] {
  /// How many bytes of the log they read.
  fileprivate var readOfLog: UInt64 { first { $0.member == .log }?.status.size ?? 0 }
}

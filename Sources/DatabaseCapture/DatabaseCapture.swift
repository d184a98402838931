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
    do {
      return try captureWhole(
        unit, in: directory, spool: spool, whenBusy: whenBusy, within: limits, store: store)
    } catch let error as SystemError {
      let unopened = unopenedCompanions(of: unit, in: directory)
      if unopened.isEmpty { throw error }
      let members = try readUnlocked(unit, in: directory, without: unopened, store)
      return CaptureResult(method: .unlocked, members: members, unopened: unopened)
    }
  }

  /// Returns the log and the journal that exist and cannot be opened.
  private static func unopenedCompanions(
    of unit: DatabaseUnit, in directory: borrowing Directory
  ) -> [CaptureResult.Unopened] {
    var unopened: [CaptureResult.Unopened] = []
    for member in DatabaseUnit.captured where member != .database {
      let name = unit.name(of: member)
      do throws(SystemError) {
        _ = try directory.regularFile(name)
      } catch {
        unopened.append(CaptureResult.Unopened(name: name, error: error))
      }
    }
    return unopened
  }

  private static func captureWhole(
    _ unit: DatabaseUnit, in directory: borrowing Directory, spool: borrowing Directory,
    whenBusy: WhenBusy, within limits: LockLimits, store: (MemberReader) throws -> Void
  ) throws -> CaptureResult? {
    for _ in 1...watchings {
      if let members = try watch(unit, in: directory, store) {
        return CaptureResult(method: .watching, members: members)
      }
    }
    let conflict: CaptureResult.Conflict
    let locked = try captureLocked(
      unit, in: directory, spool: spool, until: deadline(whenBusy), within: limits, store)
    switch locked {
    case .done(let members, let commit):
      return CaptureResult(
        method: commit?.isDecided == false ? .unlocked : .locks, members: members,
        interruptedCommit: commit)
    case .failed(let found): conflict = found
    }
    if case .deferred = whenBusy { return nil }
    let members = try readUnlocked(unit, in: directory, store)
    return CaptureResult(method: .unlocked, members: members, conflict: conflict)
  }

  private static func deadline(_ whenBusy: WhenBusy) -> Double {
    switch whenBusy {
    case .deferred: Host.monotonicSeconds() + shortWait
    case .copyUnlocked(let deadline): deadline
    }
  }

  /// Stores a member.
  static func storeMember(
    _ reader: MemberReader, _ store: (MemberReader) throws -> Void
  ) throws -> CaptureResult.Member {
    try store(reader)
    return CaptureResult.Member(reader)
  }

  /// Reads the unit without protection, except files that cannot be opened.
  private static func readUnlocked(
    _ unit: DatabaseUnit, in directory: borrowing Directory,
    without unopened: [CaptureResult.Unopened] = [], _ store: (MemberReader) throws -> Void
  ) throws -> [CaptureResult.Member] {
    let skipped = Set(unopened.map(\.name))
    var members: [CaptureResult.Member] = []
    for member in DatabaseUnit.captured where !skipped.contains(unit.name(of: member)) {
      if let reader = try MemberReader(member, of: unit, in: directory) {
        members.append(try storeMember(reader, store))
      }
    }
    return members
  }
}

extension DatabaseCapture {
  /// Reads the unit between two fingerprints. Returns nil if they differ.
  ///
  /// If they match, the database did not change and the log was only appended to. The database file
  /// and the log up to the size that was read are then a state that a crash at that moment could
  /// have left. A live journal existed all the time; the changes it would undo are not in a
  /// database that did not change.
  static func watch(
    _ unit: DatabaseUnit, in directory: borrowing Directory, _ store: (MemberReader) throws -> Void
  ) throws -> [CaptureResult.Member]? {
    guard let before = try FileFingerprint.whenStable(at: unit, in: directory),
      before.journal != .liveForSeveral, try before.isOfNoTransaction(unit, in: directory)
    else { return nil }
    var members: [CaptureResult.Member] = []
    for member in before.members {
      let isDatabase = member == .database
      guard
        let reader = try MemberReader(
          member, of: unit, in: directory, mustStayUnchanged: isDatabase),
        !isDatabase || FileFingerprint.State(reader.status) == before.database
      else { return nil }
      do {
        members.append(try storeMember(reader, store))
      } catch is MemberReader.ContentChanged {
        return nil
      }
    }
    let after = try FileFingerprint(at: unit, in: directory)
    let readOfLog = members.first { $0.member == .log }?.status.size ?? 0
    let holds =
      try before.isUnchanged(until: after, readOfLog: readOfLog) && before.journal == after.journal
      && after.isOfNoTransaction(unit, in: directory)
    return holds ? members : nil
  }
}

/// The method and the members of a captured unit.
package struct CaptureResult: Sendable {
  package let method: Method
  /// The members in the order in which they were read, the database first. Only the last `store`
  /// call for each of them counts; `store` calls for other members are void.
  package let members: [Member]
  /// The reason the unit could not be captured under locks; nil if it could, or if a file could not
  /// be opened.
  package internal(set) var conflict: Conflict?
  /// The log and the journal that exist and could not be opened; then `method` is `unlocked`.
  package internal(set) var unopened: [Unopened] = []
  /// The interrupted transaction over several databases that the journal belongs to. If it is
  /// undecided, `method` is `unlocked`.
  package internal(set) var interruptedCommit: InterruptedCommit?
}

extension CaptureResult {
  /// The reason a unit that kept changing could not be captured under locks.
  package enum Conflict: Hashable, Sendable, CustomStringConvertible {
    /// Other processes held the locks, or wrote in spite of them.
    case locked
    /// Reading took longer than the locks may be held.
    case tooLarge(seconds: Double)
    /// A system call failed.
    case failed(SystemError)

    /// The reason, as a clause for a note on the database.
    package var description: String {
      switch self {
      case .locked: "other programs held its locks"
      case .tooLarge(let seconds):
        "reading it took longer than its locks may be held (\(Int(seconds)) s)"
      case .failed(let error): error.description
      }
    }
  }

  /// The method of capturing a unit.
  package enum Method: String, CaseIterable, Hashable, Sendable {
    /// The unit did not change while it was read. The capture is consistent.
    case watching
    /// Locks kept other processes from changing the unit while it was read. The capture is
    /// consistent.
    case locks
    /// The unit was read while other processes may have changed it, or without a log or a journal
    /// that could not be opened, or with a journal that is usable only with a file that was not
    /// found. The capture may be damaged and may lack transactions.
    case unlocked = "as-it-stood"
  }

  /// A log or a journal that exists and could not be opened.
  package struct Unopened: Hashable, Sendable {
    package let name: ByteString
    package let error: SystemError
  }

  /// A captured file of a unit.
  package struct Member: Hashable, Sendable {
    package let member: DatabaseMember
    /// The name of the file.
    package let name: ByteString
    /// The status before the first byte was read. Bytes beyond its size were not read.
    package let status: FileStatus

    init(_ reader: MemberReader) {
      member = reader.member
      name = reader.name
      status = reader.status
    }
  }
}

extension DatabaseCapture {
  /// The action for a unit that keeps changing and cannot be locked.
  package enum WhenBusy: Hashable, Sendable {
    /// Skip the unit. The caller tries again later.
    case deferred
    /// Wait for the locks until `Host.monotonicSeconds()` reaches this time, then read without
    /// locks.
    case copyUnlocked(after: Double)
  }
}

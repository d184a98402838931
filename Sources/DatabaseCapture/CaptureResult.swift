package import SystemIO

/// The method and the members of a captured unit.
package struct CaptureResult: Sendable {
  package let method: CaptureMethod
  /// The members in the order in which they were read, the database first. Only the last `store`
  /// call for each of them counts; `store` calls for other members are void.
  package let members: [CapturedMember]
  /// The reason the unit could not be captured under locks; set if `method` is `unlocked`.
  package internal(set) var conflict: CaptureConflict?
}

/// The reason a unit that kept changing could not be captured under locks.
package enum CaptureConflict: Hashable, Sendable, CustomStringConvertible {
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
package enum CaptureMethod: String, CaseIterable, Hashable, Sendable {
  /// The unit did not change while it was read. The capture is consistent.
  case watching
  /// Locks kept other processes from changing the unit while it was read. The capture is
  /// consistent.
  case locks
  /// The unit was read while other processes may have changed it. The capture may be damaged and
  /// may lack transactions.
  case unlocked = "as-it-stood"
}

/// A captured file of a unit.
package struct CapturedMember: Hashable, Sendable {
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

/// The action for a unit that keeps changing and cannot be locked.
package enum WhenBusy: Hashable, Sendable {
  /// Skip the unit. The caller tries again later.
  case deferred
  /// Wait for the locks until `Host.monotonicSeconds()` reaches this time, then read without locks.
  case takeUnlocked(after: Double)
}

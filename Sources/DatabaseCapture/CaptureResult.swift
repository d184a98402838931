public import SystemIO

/// How a unit was captured, and what of it.
public struct CaptureResult: Sendable {
  public let method: CaptureMethod
  /// What was read, in the order in which it was read: the database first. What `store` was given
  /// for a member before the last time is void, and so is all that it was given for others.
  public let members: [CapturedMember]
  /// Why the unit could not be captured under locks, when `method` is `asItStood`.
  public internal(set) var obstacle: CaptureConflict?
}

/// Why a unit that did not hold still could not be captured under locks.
public enum CaptureConflict: Hashable, Sendable, CustomStringConvertible {
  /// Others held the locks, or wrote in spite of them.
  case locked
  /// Reading it took longer than the locks may be held.
  case tooLarge(seconds: Double)
  /// A call to the system failed.
  case failed(SystemError)

  /// The reason, as it follows "stored as it stood: ".
  public var description: String {
    switch self {
    case .locked: "other programs held its locks"
    case .tooLarge(let seconds):
      "reading it took longer than the \(Int(seconds)) s for which its locks may be held"
    case .failed(let error): error.description
    }
  }
}

/// How a unit was captured.
public enum CaptureMethod: String, CaseIterable, Hashable, Sendable {
  /// It held still while it was read: consistent.
  case watching
  /// It was read while locks kept others from changing it: consistent.
  case locks
  /// It was read while others may have changed it: it may be damaged, and may lack transactions.
  case asItStood = "as-it-stood"
}

/// A file of a unit as it was captured.
public struct CapturedMember: Hashable, Sendable {
  public let member: DatabaseMember
  /// The file's name.
  public let name: ByteString
  /// The status before the first byte was read. Bytes behind its size were not read.
  public let status: FileStatus

  init(_ reader: MemberReader) {
    member = reader.member
    name = reader.name
    status = reader.status
  }
}

/// What to do when a unit neither holds still nor can be locked.
public enum WhenBusy: Hashable, Sendable {
  /// Nothing: it is to be tried once more later.
  case deferred
  /// Wait for the locks until `Host.monotonicSeconds()` is this, then read it as it stands.
  case takeAsItStands(after: Double)
}

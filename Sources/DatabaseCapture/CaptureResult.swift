public import SystemIO

/// How a unit was captured, and what of it.
public struct CaptureResult: Sendable {
  public let method: CaptureMethod
  /// What was read, in the order in which it was read: the database first. What `store` was given
  /// for a member before the last time is void, and so is all that it was given for others.
  public let members: [CapturedMember]
  /// What kept the locks from being used, when `method` is `asItStood` and it was not that others
  /// held them.
  public internal(set) var obstacle: SystemError?
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
  case putOff
  /// Wait for the locks until `Host.monotonicSeconds()` is this, then read it as it stands.
  case takeAsItStands(after: Double)
}

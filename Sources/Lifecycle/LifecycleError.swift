public import SystemIO

/// Why an operation could not be done at all: what was tried, on what, why not, what to do next.
///
/// What concerns single files does not end an operation: it is in its report.
public struct LifecycleError: Error, Sendable, CustomStringConvertible {
  /// The kinds that callers tell apart.
  public enum Kind: Sendable, Hashable {
    /// A request that does not make sense as it is.
    case usage
    /// There is nothing of that name.
    case notFound
    /// Several are called so.
    case unclear
    /// Another run that must not go on beside this one is going on.
    case busy
    /// The work was asked to end early.
    case interrupted
    /// The operation was refused, or failed.
    case failed
  }

  public let kind: Kind
  /// The whole sentence, with what was tried, on what and why it was not done.
  public let description: String
  /// What to do next.
  public let hint: String?

  /// Makes an error of its sentence.
  public init(_ kind: Kind, _ description: String, hint: String? = nil) {
    self.kind = kind
    self.description = description
    self.hint = hint
  }

  /// Takes over a failed call to the system.
  public init(_ error: SystemError) {
    self.init(.failed, error.description, hint: error.hint)
  }
}

/// A path and what is to be said about it.
public struct PathRemark: Sendable, Hashable {
  /// The logical path, or the path on the device where there is none.
  public let path: ByteString
  /// A sentence without its subject: "permission denied".
  public let remark: String

  /// Makes a remark.
  public init(path: ByteString, remark: String) {
    self.path = path
    self.remark = remark
  }
}

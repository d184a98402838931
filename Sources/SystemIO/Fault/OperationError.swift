/// An error that ends an operation: the action, its subject, the reason and the remedy.
///
/// Problems with single files do not end an operation; they are listed in its report.
public struct OperationError: Error, Sendable, CustomStringConvertible {
  /// The error categories that callers distinguish.
  public enum Kind: Sendable, Hashable {
    /// The request is invalid.
    case usage
    /// No item has the given name.
    case notFound
    /// Several items have the given name.
    case unclear
    /// Another run that excludes this one is in progress.
    case busy
    /// The operation was asked to stop.
    case interrupted
    /// The operation was refused or failed.
    case failed

    /// The code of an error without a code of its own.
    fileprivate var code: ErrorCode {
      switch self {
      case .usage: .invalidArguments
      case .notFound: .notFound
      case .unclear: .ambiguousApp
      case .busy: .repositoryLocked
      case .interrupted: .interrupted
      case .failed: .systemError
      }
    }
  }

  public let kind: Kind
  /// The stable code.
  public let code: ErrorCode
  /// The message: the action, its subject and the reason, in one sentence.
  public let description: String
  /// The remedy, if there is one.
  public let hint: String?
  /// The failed system call that the error reports, if it is one.
  public let cause: SystemError?

  /// Creates an error with a message and an optional hint.
  ///
  /// - Parameter code: the code (default: the general one of the kind).
  public init(
    _ kind: Kind, code: ErrorCode? = nil, _ description: String, hint: String? = nil
  ) {
    self.kind = kind
    self.code = code ?? kind.code
    self.description = description
    self.hint = hint
    cause = nil
  }

  /// Wraps a failed system call.
  public init(_ error: SystemError) {
    kind = .failed
    code = error.code
    description = error.description
    hint = error.hint
    cause = error
  }
}

/// A path and a remark about it.
public struct PathRemark: Sendable, Hashable {
  /// The logical path, or the path on the device if there is no logical path.
  public let path: ByteString
  /// A clause without its subject, for example "permission denied".
  public let remark: String

  /// Creates a remark.
  public init(path: ByteString, remark: String) {
    self.path = path
    self.remark = remark
  }
}

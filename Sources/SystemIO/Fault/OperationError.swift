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
  /// The parts of the message; empty if the message has another form.
  public let parts: ErrorParts
  /// The message: the action, its subject and the reason, in one sentence.
  public let description: String
  /// The remedy, if there is one.
  public let hint: String?
  /// The failed system call that the error reports, if it is one.
  public let cause: SystemError?

  /// Creates an error: "cannot ACTION 'SUBJECT': REASON".
  ///
  /// - Parameters:
  ///   - code: The code (default: the general one of the kind).
  ///   - action: The action that failed, as the words after "cannot".
  ///   - subject: The path or name; the bytes of a path are kept.
  public init(
    _ kind: Kind, code: ErrorCode? = nil, _ action: String, subject: some CustomStringConvertible,
    reason: String, hint: String? = nil
  ) {
    let name = subject as? ByteString ?? ByteString(subject.description)
    self.init(
      kind, code: code, parts: ErrorParts(action: action, subject: name, reason: reason),
      message: "cannot \(action) '\(name)': \(reason)", hint: hint)
  }

  /// Creates an error without a subject: "cannot ACTION: REASON".
  public init(
    _ kind: Kind, code: ErrorCode? = nil, _ action: String, reason: String, hint: String? = nil
  ) {
    self.init(
      kind, code: code, parts: ErrorParts(action: action, reason: reason),
      message: "cannot \(action): \(reason)", hint: hint)
  }

  /// Creates an error with a message of another form, for example "the backup was interrupted".
  public init(
    _ kind: Kind, code: ErrorCode? = nil, _ description: String, hint: String? = nil
  ) {
    self.init(kind, code: code, parts: ErrorParts(), message: description, hint: hint)
  }

  /// Wraps a failed system call.
  public init(_ error: SystemError) {
    self.init(
      .failed, code: error.code, parts: error.parts, message: error.description, hint: error.hint,
      cause: error)
  }

  private init(
    _ kind: Kind, code: ErrorCode?, parts: ErrorParts, message: String, hint: String?,
    cause: SystemError? = nil
  ) {
    self.kind = kind
    self.code = code ?? kind.code
    self.parts = parts
    description = message
    self.hint = hint
    self.cause = cause
  }

  /// Returns the same error with a remark after its reason.
  public func adding(remark: String) -> OperationError {
    var parts = parts
    parts.reason = parts.reason.map { "\($0); \(remark)" }
    return OperationError(
      kind, code: code, parts: parts, message: "\(description); \(remark)", hint: hint, cause: cause
    )
  }
}

extension OperationError: ReportableError {
  public var errorCode: ErrorCode { code }
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

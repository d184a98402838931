/// The one form of an error that a user or, with `--json`, a program receives.
public protocol ReportableError: Error, CustomStringConvertible {
  /// The stable code.
  var errorCode: ErrorCode { get }
  /// The action, its subject and the reason, as far as the message separates them.
  var parts: ErrorParts { get }
  /// The remedy, if there is one.
  var hint: String? { get }
  /// The failed system call that caused the error, if there is one.
  var cause: SystemError? { get }
}

extension ReportableError {
  public var cause: SystemError? { nil }
}

/// The parts of a message of the form "cannot ACTION 'SUBJECT': REASON", as far as it has them.
public struct ErrorParts: Hashable, Sendable {
  /// The action that failed, as the words after "cannot".
  public var action: String?
  /// A path or a name.
  public var subject: ByteString?
  public var reason: String?

  public init(action: String? = nil, subject: ByteString? = nil, reason: String? = nil) {
    self.action = action
    self.subject = subject
    self.reason = reason
  }
}

extension SystemError: ReportableError {
  public var errorCode: ErrorCode { code }
  public var parts: ErrorParts {
    ErrorParts(action: operation.rawValue, subject: path, reason: reason)
  }
}

internal import SandboxModel
package import SystemIO

/// A failed operation on the sample: the operation, the subject, the reason and the remedy.
package struct SampleError: Error, Hashable, Sendable {
  /// The kind of failure, for callers that handle it.
  package enum Code: String, Sendable {
    /// The directory for a new sample is not empty.
    case notEmpty = "not-empty"
    /// The directory contains no sample of this program.
    case notASample = "not-a-sample"
    /// The sample does not have that day.
    case noSuchDay = "no-such-day"
    /// A property list of the sample cannot be written.
    case content
    /// A system call failed.
    case system
  }

  package let code: Code
  /// The operation, as the words after "cannot".
  package let action: String
  /// The path or name.
  package let subject: ByteString
  /// The reason for the failure.
  package let reason: String
  /// The remedy, or nil if there is none to suggest.
  package let hint: String?
  /// The failed system call, if there is one.
  package let cause: SystemError?

  /// Creates an error.
  package init(
    _ code: Code, _ action: String, on subject: ByteString, reason: String, hint: String? = nil,
    cause: SystemError? = nil
  ) {
    self.code = code
    self.action = action
    self.subject = subject
    self.reason = reason
    self.hint = hint
    self.cause = cause
  }

  /// Creates an error from a failed system call. `hint` is used if the error has none.
  init(_ error: SystemError, hint: String? = nil) {
    self.init(
      .system, error.operation.rawValue, on: error.path, reason: error.reason,
      hint: error.hint ?? hint, cause: error)
  }

  /// Creates an error for a property list that cannot be written.
  init(_ error: ModelError, at path: ByteString) {
    self.init(.content, error.action, on: path, reason: error.reason, hint: error.hint)
  }
}

extension SampleError {
  /// The stable code.
  package var errorCode: ErrorCode {
    switch code {
    case .notEmpty: .notEmpty
    case .notASample: .notASample
    case .noSuchDay: .invalidValue
    case .content: .invalidPropertyList
    case .system: cause?.code ?? .systemError
    }
  }
}

extension SampleError: ReportableError {
  package var parts: ErrorParts { ErrorParts(action: action, subject: subject, reason: reason) }

  /// The whole message: "cannot create a sample device in 'x': the directory is not empty".
  package var description: String { "cannot \(action) '\(subject)': \(reason)" }
}

internal import SandboxModel
public import SystemIO

/// What could not be done to the sample: what was tried, on what, why not, and what to do next.
public struct SampleError: Error, Hashable, Sendable {
  /// What kind of failure it is, for those who decide by it.
  public enum Code: String, Sendable {
    /// The directory for a new sample holds something.
    case notEmpty = "not-empty"
    /// The directory holds no sample that this program made.
    case notASample = "not-a-sample"
    /// A day that the sample does not have.
    case noSuchDay = "no-such-day"
    /// A property list of the sample cannot be written.
    case content
    /// A call to the system failed.
    case system
  }

  public let code: Code
  /// What was tried, as it follows "cannot".
  public let attempt: String
  /// The path or name it was tried on.
  public let subject: ByteString
  /// Why it could not be done.
  public let reason: String
  /// What to do about it, where there is something to say.
  public let hint: String?

  /// Makes an error.
  public init(
    _ code: Code, _ attempt: String, on subject: ByteString, _ reason: String, hint: String? = nil
  ) {
    self.code = code
    self.attempt = attempt
    self.subject = subject
    self.reason = reason
    self.hint = hint
  }

  /// Makes an error of a failed system call; `hint` where the error has none of its own.
  init(_ error: SystemError, hint: String? = nil) {
    self.init(
      .system, error.operation.rawValue, on: error.path, error.reason, hint: error.hint ?? hint)
  }

  /// Makes an error of a property list that cannot be written.
  init(_ error: ModelError, at path: ByteString) {
    self.init(.content, error.attempt, on: path, error.reason, hint: error.hint)
  }
}

extension SampleError: CustomStringConvertible {
  /// The whole sentence: "cannot make a sample device in 'x': the directory is not empty".
  public var description: String { "cannot \(attempt) '\(subject)': \(reason)" }
}

package import SystemIO

/// A request to a store that did not succeed, or could not be made.
package struct S3Failure: Error, Sendable, Hashable {
  /// The reasons.
  package enum Reason: Sendable, Hashable {
    /// The URL of the endpoint has another form.
    case endpoint(String)
    /// A settings file cannot be read, or a command cannot be run.
    case settings(SystemError)
    /// The command for credentials failed, for a reason in words.
    case command(String)
    /// The profile has no credentials, or does not exist.
    case noCredentials(profile: String, exists: Bool)
    /// A host gave no complete answer.
    case connection(HTTPFailure, host: String)
    /// The answer was an error.
    case refused(S3Refusal, host: String)
    /// The host answered with something that no store sends, described in words.
    case answer(String, host: String)
    /// The file with the body could not be read.
    case spool(SystemError)
  }

  package let reason: Reason
  /// The number of attempts.
  package let attempts: Int

  /// Creates a failure.
  package init(_ reason: Reason, attempts: Int = 1) {
    self.reason = reason
    self.attempts = attempts
  }

  /// The answer, if it was an error.
  package var refusal: S3Refusal? {
    if case .refused(let refusal, _) = reason { refusal } else { nil }
  }
}

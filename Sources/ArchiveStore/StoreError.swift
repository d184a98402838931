public import SystemIO

/// Something that a repository or its storage could not do.
public struct StoreError: Error, Hashable, Sendable {
  /// What went wrong, for programs.
  public let code: Code
  /// What was tried, as the words after "cannot".
  public let action: String
  /// On what: a path or the name of an object.
  public let subject: String
  /// Why it did not work.
  public let reason: String
  /// What to do next, where there is something to say.
  public let hint: String?
  /// The call to the system that failed, if one did.
  public let cause: SystemError?

  /// Makes an error.
  public init(
    _ code: Code, _ action: String, _ subject: String, _ reason: String, hint: String? = nil,
    cause: SystemError? = nil
  ) {
    self.code = code
    self.action = action
    self.subject = subject
    self.reason = reason
    self.hint = hint
    self.cause = cause
  }

  /// The same error with another word on what to do.
  func hinting(_ hint: String) -> StoreError {
    StoreError(code, action, subject, reason, hint: hint, cause: cause)
  }

  /// What went wrong.
  public enum Code: String, Sendable, CaseIterable {
    /// There is no repository at the place.
    case noRepository
    /// The place for a new repository holds something.
    case notEmpty
    /// The format's version, its name or one of its methods is not known.
    case unsupported
    /// A feature that the repository asks for is not known.
    case unknownFeature
    /// An object or a directory is not there.
    case missing
    /// Stored bytes are not what was written, or break the format.
    case damaged
    /// The lease was taken away while work went on.
    case leaseLost
    /// Another program is at work.
    case busy
    /// No snapshot is meant, or several are.
    case noSnapshot
    /// What the caller gave cannot be stored.
    case invalid
    /// The work was asked to end early.
    case interrupted
    /// An object has its name, but the disk may not keep it.
    case notDurable
    /// A call to the system failed.
    case system
  }

  /// The kinds of failure that a command tells apart by its exit code.
  public enum Kind: Sendable, Hashable, CaseIterable {
    case noRepository
    case busy
    case damaged
    case refused
    case interrupted
    case failed
  }

  /// The kind of the failure.
  public var kind: Kind {
    switch code {
    case .noRepository: .noRepository
    case .busy: .busy
    case .damaged, .missing: .damaged
    case .notEmpty, .unsupported, .unknownFeature, .noSnapshot, .invalid: .refused
    case .interrupted: .interrupted
    case .leaseLost, .notDurable, .system: .failed
    }
  }
}

extension StoreError: CustomStringConvertible {
  /// The whole sentence: "cannot read 'index/ab…': …".
  public var description: String { "cannot \(action) '\(subject)': \(reason)" }
}

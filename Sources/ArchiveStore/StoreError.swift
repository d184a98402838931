package import SystemIO

/// A failed operation of a repository or its storage.
package struct StoreError: Error, Hashable, Sendable {
  /// The machine-readable code.
  package let code: Code
  /// The action that failed, as the words after "cannot".
  package let action: String
  /// The subject of the action: a path or the name of an object.
  package let subject: String
  /// The reason for the failure.
  package let reason: String
  /// The suggested next step, if there is one.
  package let hint: String?
  /// The system call that failed, if there is one.
  package let cause: SystemError?

  /// Creates an error.
  package init(
    _ code: Code, _ action: String, subject: String, reason: String, hint: String? = nil,
    cause: SystemError? = nil
  ) {
    self.code = code
    self.action = action
    self.subject = subject
    self.reason = reason
    self.hint = hint
    self.cause = cause
  }

  /// Returns the same error with another hint.
  func hinting(_ hint: String) -> StoreError {
    StoreError(code, action, subject: subject, reason: reason, hint: hint, cause: cause)
  }

  /// The code of an error.
  package enum Code: String, Sendable, CaseIterable {
    /// There is no repository at the location.
    case noRepository
    /// The location of a new repository is not empty.
    case notEmpty
    /// The format name, the format version or a method is unknown.
    case unsupported
    /// The repository requires an unknown feature.
    case unknownFeature
    /// An object or a directory does not exist.
    case missing
    /// Stored bytes have changed since they were written, or violate the format.
    case damaged
    /// Another program removed the lease while the operation was running.
    case leaseLost
    /// Another program is working on the repository.
    case busy
    /// No snapshot matches, or more than one does.
    case noSnapshot
    /// The caller's input cannot be stored.
    case invalid
    /// The operation was interrupted on request.
    case interrupted
    /// An object has its name but may not be durable.
    case notDurable
    /// A system call failed.
    case system
  }

  /// The kinds of failure that a command distinguishes by exit status.
  package enum Kind: Sendable, Hashable, CaseIterable {
    case noRepository
    case busy
    case damaged
    case refused
    case interrupted
    case failed
  }

  /// The kind of this failure.
  package var kind: Kind {
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
  /// The complete message: "cannot read 'index/ab…': …".
  package var description: String { "cannot \(action) '\(subject)': \(reason)" }
}

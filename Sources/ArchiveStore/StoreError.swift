internal import Codecs
public import SystemIO

/// A failed operation of a repository or its storage.
public struct StoreError: Error, Hashable, Sendable {
  /// The kind of failure, for callers that handle it.
  public let code: Code
  /// The action that failed, as the words after "cannot".
  public let action: String
  /// The subject of the action: a path or the name of an object.
  public let subject: String
  /// The reason for the failure.
  public let reason: String
  /// The suggested next step, if there is one.
  public let hint: String?
  /// The system call that failed, if there is one.
  public let cause: SystemError?
  /// Whether the key lacks an older identity, which may open the object (`isRefused`).
  public let needsOlderKey: Bool

  /// Creates an error.
  public init(
    _ code: Code, _ action: String, subject: String, reason: String, hint: String? = nil,
    cause: SystemError? = nil
  ) {
    self.init(
      code, action, subject: subject, reason: reason, hint: hint, cause: cause,
      needsOlderKey: false)
  }

  init(
    _ code: Code, _ action: String, subject: String, reason: String, hint: String?,
    cause: SystemError?, needsOlderKey: Bool
  ) {
    self.code = code
    self.action = action
    self.subject = subject
    self.reason = reason
    self.hint = hint
    self.cause = cause
    self.needsOlderKey = needsOlderKey
  }

  /// Returns the same error with another hint.
  public func hinting(_ hint: String) -> StoreError {
    StoreError(
      code, action, subject: subject, reason: reason, hint: hint, cause: cause,
      needsOlderKey: needsOlderKey)
  }

  /// The kinds of failure that callers distinguish.
  public enum Code: String, Sendable, CaseIterable {
    /// There is no repository at the location.
    case noRepository
    /// The location of a new repository is not empty.
    case notEmpty
    /// The format name, the format version or a method is unknown.
    case unsupported
    /// The repository requires an unknown feature.
    case unknownFeature
    /// The repository is encrypted, and no key was given, or none that can read it.
    case keyRequired
    /// The passphrase or the identity does not open the repository.
    case wrongKey
    /// An object or a directory does not exist.
    case missing
    /// Stored bytes have changed since they were written, or violate the format.
    case damaged
    /// Another program removed the lease while the operation was running.
    case leaseLost
    /// Another program is working on the repository.
    case busy
    /// No snapshot matches.
    case noSnapshot
    /// Several snapshots match.
    case ambiguousSnapshot
    /// The snapshot is not signed by a trusted signer.
    case untrusted
    /// The caller's input cannot be stored.
    case invalid
    /// The operation was interrupted on request.
    case interrupted
    /// An object has its name but may not be durable.
    case notDurable
    /// A system call failed.
    case system
  }

  /// Whether the system or the store denies this user access, or the key lacks an older identity.
  /// That is not damage: the object may be intact, and can be read again once its owner or mode, or
  /// the rights, are changed, or with another key.
  public var isRefused: Bool { cause?.isRefused == true || needsOlderKey }

  /// Whether the store failed to send an object, or did not answer. That is not damage: the object
  /// may be intact, and can be read when the store works again.
  public var isStoreFailure: Bool { code == .system && !isRefused }

  /// Whether a directory does not exist. If something else has its name, the code is `missing` as
  /// well.
  var isAbsence: Bool { code == .missing && cause?.isAbsent != false }

  /// Whether the error affects only this object: it is damaged, of an unsupported version, or
  /// inaccessible to this user.
  var costsTheObjectAlone: Bool { kind == .damaged || code == .unsupported || isRefused }

  /// The same error reported as damage, for a walk that continues without the object.
  var asDamage: StoreError {
    StoreError(
      .damaged, action, subject: subject, reason: reason, hint: hint, cause: cause,
      needsOlderKey: needsOlderKey)
  }

  /// The same error for an object that this one may contain and no other does.
  func asMissing(_ object: String) -> StoreError {
    StoreError(
      .missing, "read", subject: object, reason: "it may be in '\(subject)': \(reason)", hint: hint,
      cause: cause, needsOlderKey: needsOlderKey)
  }

  /// The kinds of failure that a command distinguishes by exit status.
  public enum Kind: Sendable, Hashable, CaseIterable {
    case noRepository
    case busy
    case wrongKey
    case damaged
    case refused
    case interrupted
    case failed
  }

  /// The kind of this failure.
  public var kind: Kind {
    switch code {
    case .noRepository: .noRepository
    case .busy: .busy
    case .keyRequired, .wrongKey: .wrongKey
    case .damaged, .missing, .untrusted: .damaged
    case .notEmpty, .unsupported, .unknownFeature, .noSnapshot, .ambiguousSnapshot, .invalid:
      .refused
    case .interrupted: .interrupted
    case .leaseLost, .notDurable, .system: .failed
    }
  }

  /// The stable code; that of the system call if one failed for a reason other than a missing
  /// object.
  public var errorCode: ErrorCode {
    if needsOlderKey { return .keyRequired }
    return switch code {
    case .noRepository: .noRepository
    case .notEmpty: .notEmpty
    case .unsupported: .unsupportedFormat
    case .unknownFeature: .unknownFeature
    case .keyRequired: .keyRequired
    case .wrongKey: .wrongKey
    case .missing: .objectMissing
    case .damaged: .damaged
    case .leaseLost: .leaseLost
    case .busy: .repositoryLocked
    case .noSnapshot: .snapshotNotFound
    case .ambiguousSnapshot: .snapshotAmbiguous
    case .untrusted: .snapshotUntrusted
    case .invalid: .invalidInput
    case .interrupted: .interrupted
    case .notDurable: .notDurable
    case .system: cause?.code ?? .systemError
    }
  }
}

extension StoreError: ReportableError {
  /// The complete message: "cannot read 'index/ab…': …".
  public var description: String { "cannot \(action) '\(subject)': \(reason)" }

  /// The parts of the message. The subject is text; a path in the cause has its bytes.
  public var parts: ErrorParts {
    let path = cause.flatMap { $0.path.description == subject ? $0.path : nil }
    return ErrorParts(action: action, subject: path ?? ByteString(subject), reason: reason)
  }
}

extension StoreError {
  static let checkHint =
    "other snapshots and files may be intact; leave the repository unchanged and restore them"
  static let indexHint = "run 'sandboxctl repair index' to rebuild the index from the packs"

  /// Returns the error for a failed system call, with the system's reason.
  static func system(_ error: SystemError) -> StoreError {
    StoreError(
      error.isMissing ? .missing : .system, error.operation.rawValue,
      subject: error.path.description, reason: error.reason, hint: error.hint, cause: error)
  }

  /// Returns the error for bytes that cannot be decoded or a value that cannot be encoded. Input
  /// that a codec does not support counts as damage to that object only, because objects record
  /// their own versions.
  static func codec(_ error: CodecError, _ subject: String) -> StoreError {
    let code: Code =
      switch error.kind {
      case .malformed, .truncated, .limit, .unsupported: .damaged
      case .unrepresentable: .invalid
      case .library: .system
      }
    let hint = code == .damaged ? checkHint : error.hint
    let location = error.offset.map { ", at byte \($0)" } ?? ""
    let reason = "\(error.format.rawValue): \(error.reason)\(location)"
    return StoreError(code, "use", subject: subject, reason: reason, hint: hint)
  }

  /// Returns a number of packs as text.
  static func packs(_ count: Int) -> String { count == 1 ? "1 pack" : "\(count) packs" }

  /// Returns the error for stored bytes that violate the format.
  static func damaged(_ subject: String, _ reason: String) -> StoreError {
    StoreError(.damaged, "use", subject: subject, reason: reason, hint: checkHint)
  }

  /// Returns the error for an object that does not exist.
  static func missing(_ subject: String) -> StoreError {
    StoreError(
      .missing, "read", subject: subject, reason: "it is not in the repository", hint: checkHint)
  }

  /// Returns the error for an index that lacks objects, whose contents were found without them.
  static func incompleteIndex() -> StoreError {
    StoreError(
      .damaged, "find everything in", subject: "index",
      reason: "snapshots need packs that no index object names", hint: indexHint)
  }

  /// Returns the error for input that the format cannot represent.
  static func invalid(_ subject: String, _ reason: String) -> StoreError {
    StoreError(.invalid, "store", subject: subject, reason: reason)
  }

  /// Returns the error for a snapshot name that selects none, or several.
  static func noSnapshot(
    _ text: String, _ reason: String, isAmbiguous: Bool = false
  ) -> StoreError {
    StoreError(
      isAmbiguous ? .ambiguousSnapshot : .noSnapshot, "find the snapshot", subject: text,
      reason: reason,
      hint: "run 'sandboxctl snapshots' to list the snapshots")
  }

  /// Returns the error for work that the user interrupted.
  package static func interrupted(
    _ action: String, _ subject: String, hint: String
  ) -> StoreError {
    StoreError(
      .interrupted, action, subject: subject, reason: "it was interrupted", hint: hint)
  }

  /// Returns the hint for a location without a repository. Creating one is suggested last: below
  /// the directory of a disk that is not mounted, it would be created on another disk.
  ///
  /// - Parameter isLocal: whether the location is a directory on this host.
  package static func absentHint(isLocal: Bool) -> String {
    "check the \(isLocal ? "path, and that its disk is mounted" : "location"); 'sandboxctl init' "
      + "creates a new repository"
  }

  /// Makes system calls and converts a failure to `StoreError`.
  static func wrap<Result: ~Copyable>(
    _ body: () throws(SystemError) -> Result
  ) throws(StoreError) -> Result {
    do { return try body() } catch { throw system(error) }
  }

  /// Runs a codec and converts a failure to `StoreError`.
  static func wrap<Result: ~Copyable>(
    coding subject: @autoclosure () -> String, _ body: () throws(CodecError) -> Result
  ) throws(StoreError) -> Result {
    do { return try body() } catch { throw codec(error, subject()) }
  }
}

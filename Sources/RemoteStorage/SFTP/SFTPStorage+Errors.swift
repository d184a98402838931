internal import ArchiveStore
internal import SystemIO

/// The error numbers of Linux (errno(3)) with which failures of a server are reported.
enum ErrorNumber {
  static let missing: Int32 = 2
  static let inputOutput: Int32 = 5
  static let permission: Int32 = 13
  static let exists: Int32 = 17
  static let notDirectory: Int32 = 20
  static let invalid: Int32 = 22
  static let full: Int32 = 28
  static let notEmpty: Int32 = 39
  static let link: Int32 = 40
}

extension SFTPStorage {
  /// Makes calls that are safe to repeat, and converts their failure.
  func perform<Result>(
    _ operation: SystemError.Operation, at path: ObjectPath,
    _ body: (SFTPConnection, _ isRepeated: Bool) throws(SFTPFailure) -> Result
  ) throws(StoreError) -> Result {
    do throws(SFTPFailure) {
      return try session.perform(body)
    } catch { throw storeError(error, operation, at: path) }
  }

  /// Returns the error for a failed request.
  func storeError(
    _ failure: SFTPFailure, _ operation: SystemError.Operation, at path: ObjectPath
  ) -> StoreError {
    switch failure {
    case .refused(let status): refused(status, operation, at: path)
    case .unusable(let error):
      StoreError(
        error.isMissing ? .missing : .system, operation.rawValue, subject: subject(path),
        reason: error.reason, hint: error.hint, cause: error)
    case .lost(let ending), .impossible(let ending):
      StoreError(
        .system, "reach the repository", subject: location, reason: ending.description,
        hint: ending.hint)
    case .interrupted(let ending):
      StoreError(
        .interrupted, "reach the repository", subject: location,
        reason: "it was interrupted after \(ending.description)",
        hint: "run it again: data stored so far is reused")
    }
  }

  private func refused(
    _ status: SFTPStatus, _ operation: SystemError.Operation, at path: ObjectPath
  ) -> StoreError {
    let full = serverPath(path)
    func error(_ number: Int32) -> SystemError { SystemError(operation, full, number: number) }
    switch status.code {
    case .noSuchFile:
      let cause = error(ErrorNumber.missing)
      return StoreError(
        .missing, operation.rawValue, subject: subject(path), reason: cause.reason,
        hint: cause.hint, cause: cause)
    case .permissionDenied:
      return StoreError(
        .system, operation.rawValue, subject: subject(path),
        reason: "the server denies permission",
        hint: "check the owner and the mode on the server, or log in as the user who owns it"
          + ownerCommand,
        cause: error(ErrorNumber.permission))
    default:
      return StoreError(
        .system, operation.rawValue, subject: subject(path),
        reason: "the server reports: \(Self.shown(status))",
        hint: "check the disk and the logs of the server")
    }
  }

  /// The command that gives all objects to the owner of the repository, to continue a sentence.
  private var ownerCommand: String {
    guard let path = ShellWord.argument(root) else { return "" }
    return "; on the server: sudo chown -R --reference=\(path) \(path)"
  }

  /// Returns the error for an object that may not be read, with its owner and mode, if the server
  /// shows them.
  func readRefusal(_ failure: SFTPFailure, at path: ObjectPath) -> StoreError {
    let error = storeError(failure, .read, at: path)
    let shown = try? session.perform { connection, _ throws(SFTPFailure) in
      try connection.statusIfPresent(serverPath(path))
    }
    guard let found = shown ?? nil, let owner = found.owner, let mode = found.mode else {
      return error
    }
    let digits = String(mode & 0o7777, radix: 8)
    let zeros = String(repeating: "0", count: max(0, 4 - digits.count))
    return StoreError(
      error.code, error.action, subject: error.subject,
      reason: "\(error.reason): it belongs to user \(owner) there (mode \(zeros)\(digits))",
      hint: error.hint, cause: error.cause)
  }

  /// A server's message, with control characters escaped.
  private static func shown(_ status: SFTPStatus) -> String {
    let text = status.message.description
    return text.isEmpty ? "failure \(status.code.rawValue)" : text
  }

  private func subject(_ path: ObjectPath) -> String {
    path.components.isEmpty ? location : "\(location)/\(path)"
  }

  /// Returns the error for a failed write: of a full volume if the server reports one, because it
  /// gives no reason itself.
  func writeError(
    _ failure: SFTPFailure, _ operation: SystemError.Operation, at path: ObjectPath
  ) -> StoreError {
    let error = storeError(failure, operation, at: path)
    guard failure.code == .failure || failure.code == .permissionDenied else { return error }
    let space = failure.code == .failure ? try? space() : nil
    guard let space, space.available < 1 << 16 || space.countsInodes && space.availableInodes == 0
    else {
      guard error.cause?.isRefused == true else { return error }
      return StoreError(
        .system, "write to the repository", subject: location, reason: error.reason,
        hint: error.hint, cause: error.cause)
    }
    let cause = SystemError(operation, serverPath(path), number: ErrorNumber.full)
    return StoreError(
      .system, "write to the repository", subject: location, reason: cause.reason,
      hint: cause.hint, cause: cause)
  }

  /// Returns the error for an object that cannot be used as stored.
  func damaged(_ path: ObjectPath, _ reason: String) -> StoreError {
    StoreError(
      .damaged, "use", subject: "\(path)", reason: reason,
      hint: "other snapshots and files may be intact; leave the repository unchanged and restore"
        + " them")
  }
}

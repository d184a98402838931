internal import Codecs
internal import SystemIO

extension StoreError {
  static let checkHint =
    "other snapshots and files may be intact; leave the repository unchanged and restore them"

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
    let place = error.offset.map { ", at byte \($0)" } ?? ""
    let reason = "\(error.format.rawValue): \(error.reason)\(place)"
    return StoreError(code, "use", subject: subject, reason: reason, hint: hint)
  }

  /// Returns the error for stored bytes that violate the format.
  static func damaged(_ subject: String, _ reason: String) -> StoreError {
    StoreError(.damaged, "use", subject: subject, reason: reason, hint: checkHint)
  }

  /// Returns the error for an object that does not exist.
  static func missing(_ subject: String) -> StoreError {
    StoreError(
      .missing, "read", subject: subject, reason: "it is not in the repository", hint: checkHint)
  }

  /// Returns the error for input that the format cannot represent.
  static func invalid(_ subject: String, _ reason: String) -> StoreError {
    StoreError(.invalid, "store", subject: subject, reason: reason)
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

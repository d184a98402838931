internal import Codecs
internal import SystemIO

extension StoreError {
  static let checkHint =
    "other snapshots and files may still be whole; keep the repository as it is and restore them"

  /// A failed call to the system, with its own words.
  static func system(_ error: SystemError) -> StoreError {
    StoreError(
      error.isMissing ? .missing : .system, error.operation.rawValue, error.path.description,
      error.reason, hint: error.hint, cause: error)
  }

  /// Bytes that could not be decoded, or a value that could not be encoded. What a codec does not
  /// take is damage, too, and costs the object alone: objects name their versions themselves.
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
    return StoreError(code, "use", subject, reason, hint: hint)
  }

  /// Stored bytes that break the format.
  static func damaged(_ subject: String, _ reason: String) -> StoreError {
    StoreError(.damaged, "use", subject, reason, hint: checkHint)
  }

  /// Something that is not there.
  static func missing(_ subject: String) -> StoreError {
    StoreError(.missing, "read", subject, "it is not in the repository", hint: checkHint)
  }

  /// What a caller gave and the format does not take.
  static func invalid(_ subject: String, _ reason: String) -> StoreError {
    StoreError(.invalid, "store", subject, reason)
  }

  /// Runs calls to the system and gives their failure as this module's error.
  static func wrap<Result: ~Copyable>(
    _ body: () throws(SystemError) -> Result
  ) throws(StoreError) -> Result {
    do { return try body() } catch { throw system(error) }
  }

  /// Runs a codec and gives its failure as this module's error.
  static func wrap<Result: ~Copyable>(
    coding subject: @autoclosure () -> String, _ body: () throws(CodecError) -> Result
  ) throws(StoreError) -> Result {
    do { return try body() } catch { throw codec(error, subject()) }
  }
}

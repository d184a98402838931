internal import ArchiveStore
internal import Codecs
internal import PolicyEngine
internal import SampleDevice
internal import SandboxModel
internal import SystemIO

/// An error as reported to the user or, with `--json`, to a program.
struct Failure {
  let status: ExitStatus
  let message: String
  let hint: String?

  /// Reports `damaged` for an object that was not found if damaged objects were skipped, since it
  /// may be one of them.
  init(_ error: any Error, passingOverDamage hasSkipped: Bool) {
    let failure = Failure(error)
    let isHidden = hasSkipped && (error as? OperationError)?.kind == .notFound
    self.init(isHidden ? .damaged : failure.status, failure.message, hint: failure.hint)
  }

  /// Maps an error to its exit status. No other code does.
  init(_ error: any Error) {
    switch error {
    case let error as StoreError:
      self.init(Self.status(error.kind), error.description, hint: error.hint)
    case let error as OperationError:
      self.init(Self.status(error.kind), error.description, hint: error.hint)
    case let error as ModelError: self.init(.failed, error.description, hint: error.hint)
    case let error as PolicyError:
      self.init(Self.status(error), error.description, hint: error.hint)
    case let error as SampleError:
      self.init(
        error.code == .noSuchDay ? .wrongUsage : .failed, error.description, hint: error.hint)
    case let error as SystemError: self.init(.failed, error.description, hint: error.hint)
    case let error as ConfigurationError: self.init(.failed, error.description, hint: error.hint)
    case let error as UsageError: self.init(.wrongUsage, error.description, hint: error.hint)
    default: self.init(.failed, "\(error)", hint: nil)
    }
  }

  init(_ status: ExitStatus, _ message: String, hint: String?) {
    self.status = status
    self.message = message
    self.hint = hint
  }

  private static func status(_ kind: StoreError.Kind) -> ExitStatus {
    switch kind {
    case .noRepository: .noRepository
    case .busy: .busy
    case .damaged: .damaged
    case .interrupted: .interrupted
    case .refused, .failed: .failed
    }
  }

  /// Returns `wrongUsage` for a mistake in the command line and `failed` for one in a file.
  private static func status(_ error: PolicyError) -> ExitStatus {
    error.issues.contains { $0.location.isOfCommandLine } ? .wrongUsage : .failed
  }

  private static func status(_ kind: OperationError.Kind) -> ExitStatus {
    switch kind {
    case .usage: .wrongUsage
    case .interrupted: .interrupted
    case .busy: .busy
    case .notFound, .unclear, .failed: .failed
    }
  }

  /// The failure as `--json` prints it.
  var json: JSON {
    var members: [JSON.Member] = [
      JSON.Member("error", .string(message)),
      JSON.Member("exit_status", .integer(Int64(status.rawValue))),
    ]
    if let hint { members.append(JSON.Member("hint", .string(hint))) }
    return .object(members)
  }
}

/// Arguments that are invalid or cannot be combined: exit status 2.
struct UsageError: Error, CustomStringConvertible {
  let description: String
  let hint: String?

  init(_ description: String, hint: String? = nil) {
    self.description = description
    self.hint = hint
  }
}

/// A configuration that cannot be used: exit status 1.
struct ConfigurationError: Error {
  let description: String
  let hint: String

  /// Creates an error about a place in the file.
  init(_ problem: String, at place: String, hint: String) {
    description = "cannot use the configuration: \(place): \(problem)"
    self.hint = hint
  }

  init(_ problem: String, at mark: Mark, in file: ByteString, hint: String? = nil) {
    self.init(
      problem, at: "\(file):\(mark)", hint: hint ?? "'man sandboxctl-config' describes the file")
  }
}

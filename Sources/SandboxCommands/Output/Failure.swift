internal import ArchiveStore
public import Codecs
internal import Interchange
public import PolicyEngine
internal import SampleDevice
internal import SandboxModel
public import SystemIO

/// An error as reported to the user or, with `--json`, to a program.
struct Failure {
  private(set) var status: ExitStatus
  /// The stable code.
  private(set) var code: ErrorCode
  /// The action, its subject and the reason in one sentence.
  private(set) var message: String
  /// The remedy, if there is one.
  private(set) var hint: String?
  /// The action, its subject and the reason, as far as they are known separately.
  var parts = ErrorParts()
  /// The failed system call, if there is one.
  var cause: SystemError?

  init(_ message: String, status: ExitStatus, code: ErrorCode, hint: String?) {
    self.message = message
    self.status = status
    self.code = code
    self.hint = hint
  }

  /// Reports `damaged` for an object that was not found if damaged objects were skipped, because it
  /// may be one of them.
  init(_ error: any Error, passingOverDamage hasSkipped: Bool) {
    self.init(error)
    if hasSkipped, (error as? OperationError)?.kind == .notFound {
      status = .damaged
      code = .damaged
    }
  }

  /// Reports an error of one of the program's own types; any other is an internal error.
  init(_ error: any Error) {
    guard let error = error as? any ReportableError else {
      self.init("\(error)", status: .failed, code: .internalError, hint: nil)
      return
    }
    self.init(
      error.description, status: ExitStatus(of: error), code: error.errorCode, hint: error.hint)
    parts = error.parts
    cause = error.cause
  }

  /// Returns the failure with the location of the setting that caused it.
  func set(in location: String) -> Failure {
    var failure = self
    failure.message += " (set in \(location))"
    return failure
  }

  /// Returns the failure with a remedy whose commands use the repository.
  func suggesting(_ commands: SuggestedCommands) -> Failure {
    var failure = self
    failure.hint = hint.map(commands.complete)
    return failure
  }

  /// The failure as `--json` prints it.
  var json: JSON {
    var members = [
      JSON.Member("error", .string(message)),
      JSON.Member("exit_status", .integer(Int64(status.rawValue))),
      JSON.Member("code", .string(code.rawValue)),
    ]
    members += parts.members
    if let hint { members.append(JSON.Member("hint", .string(hint))) }
    if let cause {
      members.append(
        JSON.Member(
          "cause",
          .object([JSON.Member("code", .string(cause.code.rawValue))] + cause.parts.members)))
    }
    return .object(members)
  }
}

extension ExitStatus {
  /// Maps an error to its exit status. No other code does.
  fileprivate init(of error: any ReportableError) {
    self =
      switch error {
      case let error as StoreError: error.needsOlderKey ? .wrongKey : Self(of: error.kind)
      case let error as OperationError: Self(of: error.kind)
      case let error as PolicyError: error.isOfCommandLine ? .wrongUsage : .failed
      case let error as SampleError: error.code == .noSuchDay ? .wrongUsage : .failed
      case is UsageError: .wrongUsage
      case let error as InterchangeError: Self(of: error.kind)
      default: .failed
      }
  }

  private init(of kind: StoreError.Kind) {
    self =
      switch kind {
      case .noRepository: .noRepository
      case .busy: .busy
      case .wrongKey: .wrongKey
      case .damaged: .damaged
      case .interrupted: .interrupted
      case .refused, .failed: .failed
      }
  }

  private init(of kind: OperationError.Kind) {
    self =
      switch kind {
      case .usage: .wrongUsage
      case .interrupted: .interrupted
      case .busy: .busy
      case .notFound, .unclear, .failed: .failed
      }
  }
}

extension ExitStatus {
  private init(of kind: InterchangeError.Kind) {
    self =
      switch kind {
      case .damaged, .damagedEntry: .damaged
      case .keyRequired, .wrongKey: .wrongKey
      case .interrupted: .interrupted
      case .unknownFormat, .unsupported, .limitExceeded, .unrepresentable, .exists, .programFailed,
        .system:
        .failed
      }
  }
}

extension ErrorParts {
  /// The parts as members of an object.
  fileprivate var members: [JSON.Member] {
    (action.map { [JSON.Member("action", .string($0))] } ?? [])
      + (subject.map { JSON.path($0, named: "subject") } ?? [])
      + (reason.map { [JSON.Member("reason", .string($0))] } ?? [])
  }
}

extension PolicyError: ReportableError {
  /// The first mistake in the command line; nil if all are in files.
  private var mistake: PolicyIssue? { issues.first { $0.location.isOfCommandLine } }

  /// Whether a mistake is on the command line and not in a file.
  var isOfCommandLine: Bool { mistake != nil }

  public var errorCode: ErrorCode {
    mistake.map { $0.kind == .extends ? .noPolicy : .invalidPattern } ?? .invalidPolicy
  }

  public var parts: ErrorParts {
    let issue = issues.first { $0.severity == .error }
    return ErrorParts(
      action: action, subject: issue.map { ByteString("\($0.location)") }, reason: issue?.problem)
  }
}

extension CodecError: ReportableError {
  public var errorCode: ErrorCode {
    switch (kind, format) {
    case (.limit, _): .limitExceeded
    case (.library, _): .systemError
    case (_, .propertyList): .invalidPropertyList
    case (.unsupported, _): .unsupportedFormat
    case (.malformed, _), (.truncated, _), (.unrepresentable, _): .invalidInput
    }
  }

  public var parts: ErrorParts { ErrorParts(reason: reason) }
}

/// Arguments that are invalid or cannot be combined: exit status 2.
struct UsageError: ReportableError {
  let code: ErrorCode
  let description: String
  let hint: String?

  init(_ code: ErrorCode, _ description: String, hint: String? = nil) {
    self.code = code
    self.description = description
    self.hint = hint
  }

  var errorCode: ErrorCode { code }
  /// Empty: the message is about the arguments.
  var parts: ErrorParts { ErrorParts() }
}

/// A configuration that cannot be used: exit status 1.
struct ConfigurationError: ReportableError {
  /// The action that failed, as the words after "cannot".
  static let action = "use the configuration"

  let problem: String
  /// The position in the file.
  let location: String
  let hint: String?

  /// Creates an error about a line of the file.
  init(_ problem: String, at location: String, hint: String) {
    self.problem = problem
    self.location = location
    self.hint = hint
  }

  init(_ problem: String, at mark: Mark, in file: ByteString, hint: String? = nil) {
    self.init(
      problem, at: "\(file):\(mark)", hint: hint ?? "'man sandboxctl-config' describes the file")
  }

  var errorCode: ErrorCode { .invalidConfiguration }
  var parts: ErrorParts {
    ErrorParts(action: Self.action, subject: ByteString(location), reason: problem)
  }
  var description: String { "cannot \(Self.action): \(location): \(problem)" }
}

internal import ArchiveStore
internal import Codecs
internal import PolicyEngine
internal import SampleDevice
internal import SandboxModel
internal import SystemIO

/// An error as reported to the user or, with `--json`, to a program.
struct Failure {
  private(set) var status: ExitStatus
  /// The stable code.
  private(set) var code: ErrorCode
  /// The action, its subject and the reason in one sentence.
  private(set) var message: String
  /// The remedy, if there is one.
  let hint: String?
  /// The action, its subject and the reason as far as they are known apart.
  var parts = Parts()
  /// The failed system call, if there is one.
  var cause: SystemError?

  /// The parts of a message.
  struct Parts: Equatable {
    /// The action that failed, as the words after "cannot".
    var action: String?
    /// A path or a name.
    var subject: ByteString?
    var reason: String?
  }

  init(_ message: String, status: ExitStatus, code: ErrorCode, hint: String?) {
    self.message = message
    self.status = status
    self.code = code
    self.hint = hint
  }

  /// Reports `damaged` for an object that was not found if damaged objects were skipped, since it
  /// may be one of them.
  init(_ error: any Error, passingOverDamage hasSkipped: Bool) {
    self.init(error)
    if hasSkipped, (error as? OperationError)?.kind == .notFound {
      status = .damaged
      code = .damaged
    }
  }

  /// Maps an error to its exit status and code. No other code does.
  init(_ error: any Error) {
    switch error {
    case let error as StoreError: self.init(store: error)
    case let error as OperationError: self.init(operation: error)
    case let error as ModelError:
      self.init(error.description, status: .failed, code: error.errorCode, hint: error.hint)
      parts = Parts(action: error.attempt, subject: error.subject, reason: error.reason)
      cause = error.cause
    case let error as PolicyError:
      self.init(error.description, status: error.status, code: error.code, hint: error.hint)
      let issue = error.issues.first { $0.severity == .error }
      parts = Parts(
        action: error.action, subject: issue.map { ByteString("\($0.location)") },
        reason: issue?.problem)
    case let error as SampleError:
      self.init(
        error.description, status: error.code == .noSuchDay ? .wrongUsage : .failed,
        code: error.errorCode, hint: error.hint)
      parts = Parts(action: error.attempt, subject: error.subject, reason: error.reason)
      cause = error.cause
    case let error as SystemError:
      self.init(error.description, status: .failed, code: error.code, hint: error.hint)
      parts = Parts(error)
    case let error as CodecError:
      self.init(error.description, status: .failed, code: error.errorCode, hint: error.hint)
      parts.reason = error.reason
    case let error as ConfigurationError:
      self.init(
        error.description, status: .failed, code: .invalidConfiguration, hint: error.hint)
      parts = Parts(
        action: ConfigurationError.action, subject: ByteString(error.place), reason: error.problem)
    case let error as UsageError:
      self.init(error.description, status: .wrongUsage, code: error.code, hint: error.hint)
    default: self.init("\(error)", status: .failed, code: .internalError, hint: nil)
    }
  }

  private init(store error: StoreError) {
    let status: ExitStatus =
      switch error.kind {
      case .noRepository: .noRepository
      case .busy: .busy
      case .damaged: .damaged
      case .interrupted: .interrupted
      case .refused, .failed: .failed
      }
    self.init(error.description, status: status, code: error.errorCode, hint: error.hint)
    // The subject is text; a path in the cause has its bytes.
    let path = error.cause.flatMap { $0.path.description == error.subject ? $0.path : nil }
    parts = Parts(
      action: error.action, subject: path ?? ByteString(error.subject), reason: error.reason)
    cause = error.cause
  }

  private init(operation error: OperationError) {
    let status: ExitStatus =
      switch error.kind {
      case .usage: .wrongUsage
      case .interrupted: .interrupted
      case .busy: .busy
      case .notFound, .unclear, .failed: .failed
      }
    self.init(error.description, status: status, code: error.code, hint: error.hint)
    if let cause = error.cause { parts = Parts(cause) }
  }

  /// Returns the failure with the location of the setting that caused it.
  func set(in place: String) -> Failure {
    var failure = self
    failure.message += " (set in \(place))"
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
          .object([JSON.Member("code", .string(cause.code.rawValue))] + Parts(cause).members)))
    }
    return .object(members)
  }
}

extension Failure.Parts {
  init(_ error: SystemError) {
    self.init(action: error.operation.rawValue, subject: error.path, reason: error.reason)
  }

  /// The parts as members of an object.
  fileprivate var members: [JSON.Member] {
    (action.map { [JSON.Member("action", .string($0))] } ?? [])
      + (subject.map { JSON.path($0, named: "subject") } ?? [])
      + (reason.map { [JSON.Member("reason", .string($0))] } ?? [])
  }
}

extension ModelError {
  fileprivate var errorCode: ErrorCode {
    switch code {
    case .propertyList: .invalidPropertyList
    case .limit: .limitExceeded
    case .logicalPath: .invalidPath
    case .containerName: .invalidContainerName
    case .noDevice: .noDevice
    case .ambiguousDevice: .ambiguousDevice
    case .noApp: .noApp
    case .ambiguousApp: .ambiguousApp
    case .package: .invalidPackage
    case .unsafePackage: .unsafePackage
    case .system: cause?.code ?? .systemError
    }
  }
}

extension PolicyError {
  /// The first mistake in the command line; nil if all are in files.
  private var mistake: PolicyIssue? { issues.first { $0.location.isOfCommandLine } }

  /// `wrongUsage` for a mistake in the command line and `failed` for one in a file.
  fileprivate var status: ExitStatus { mistake == nil ? .failed : .wrongUsage }

  fileprivate var code: ErrorCode {
    mistake.map { $0.kind == .extends ? .noPolicy : .invalidPattern } ?? .invalidPolicy
  }
}

extension CodecError {
  fileprivate var errorCode: ErrorCode {
    switch (kind, format) {
    case (.limit, _): .limitExceeded
    case (.library, _): .systemError
    case (_, .propertyList): .invalidPropertyList
    case (.unsupported, _): .unsupportedFormat
    case (.malformed, _), (.truncated, _), (.unrepresentable, _): .invalidInput
    }
  }
}

/// Arguments that are invalid or cannot be combined: exit status 2.
struct UsageError: Error, CustomStringConvertible {
  let code: ErrorCode
  let description: String
  let hint: String?

  init(_ code: ErrorCode, _ description: String, hint: String? = nil) {
    self.code = code
    self.description = description
    self.hint = hint
  }
}

/// A configuration that cannot be used: exit status 1.
struct ConfigurationError: Error {
  /// The action that failed, as the words after "cannot".
  static let action = "use the configuration"

  let problem: String
  /// The position in the file.
  let place: String
  let hint: String

  /// Creates an error about a place in the file.
  init(_ problem: String, at place: String, hint: String) {
    self.problem = problem
    self.place = place
    self.hint = hint
  }

  init(_ problem: String, at mark: Mark, in file: ByteString, hint: String? = nil) {
    self.init(
      problem, at: "\(file):\(mark)", hint: hint ?? "'man sandboxctl-config' describes the file")
  }

  var description: String { "cannot \(Self.action): \(place): \(problem)" }
}

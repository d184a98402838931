internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Lifecycle
internal import PolicyEngine
internal import SampleDevice
internal import SandboxModel
internal import SystemIO

/// The exit statuses of the program. Errors of an unknown type end with `failed`.
enum ExitStatus: Int32, Error {
  case done = 0
  case failed = 1
  case wrongUsage = 2
  /// Some of the selected data could not be read, restored or deleted.
  case doneInPart = 3
  case nothingToDo = 4
  /// A goal was not met: a purge freed too little, a policy has a mistake, an example failed.
  case goalNotMet = 5
  case noRepository = 10
  case busy = 11
  case damaged = 13
  case interrupted = 130

  /// Returns the status of a run that skipped damaged objects if `hasSkipped` is set: `damaged`,
  /// unless an interruption or an unmet goal takes precedence.
  func after(passingOverDamage hasSkipped: Bool) -> ExitStatus {
    hasSkipped && (self == .done || self == .doneInPart) ? .damaged : self
  }
}

/// An error as reported to the user or, with `--json`, to a program.
struct Failure {
  let status: ExitStatus
  let message: String
  let hint: String?

  /// Reports `damaged` for an object that was not found if damaged objects were skipped, since it
  /// may be one of them.
  init(_ error: any Error, passingOverDamage hasSkipped: Bool) {
    let failure = Failure(error)
    let isHidden = hasSkipped && (error as? LifecycleError)?.kind == .notFound
    self.init(isHidden ? .damaged : failure.status, failure.message, hint: failure.hint)
  }

  /// Maps an error to its exit status. No other code does.
  init(_ error: any Error) {
    switch error {
    case let error as StoreError:
      self.init(Self.status(error.kind), error.description, hint: error.hint)
    case let error as LifecycleError:
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

  private static func status(_ kind: LifecycleError.Kind) -> ExitStatus {
    switch kind {
    case .usage: .wrongUsage
    case .interrupted: .interrupted
    case .busy: .busy
    case .notFound, .unclear, .failed: .failed
    }
  }
}

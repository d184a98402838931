internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Lifecycle
internal import PolicyEngine
internal import SampleDevice
internal import SandboxModel
internal import SystemIO

/// What the program's exit status says; unknown ones are failures.
enum ExitStatus: Int32, Error {
  case done = 0
  case failed = 1
  case wrongUsage = 2
  /// Something that the policy keeps could not be read or restored.
  case doneInPart = 3
  case nothingToDo = 4
  /// A goal was not met: a lint with findings, an example that failed.
  case goalNotMet = 5
  case noRepository = 10
  case busy = 11
  case damaged = 13
  case interrupted = 130

  /// The status where the work was done with damage passed over: an interruption, or a goal that was
  /// not met, says more.
  func after(passingOverDamage hasSkipped: Bool) -> ExitStatus {
    hasSkipped && (self == .done || self == .doneInPart) ? .damaged : self
  }
}

/// An error as a person or a program is told of it.
struct Failure {
  let status: ExitStatus
  let message: String
  let hint: String?

  /// What is not found may be in what is damaged and was passed over: then the status tells of that.
  init(_ error: any Error, passingOverDamage hasSkipped: Bool) {
    let failure = Failure(error)
    let isHidden = hasSkipped && (error as? LifecycleError)?.kind == .notFound
    self.init(isHidden ? .damaged : failure.status, failure.message, failure.hint)
  }

  /// The one place where errors become exit codes.
  init(_ error: any Error) {
    switch error {
    case let error as StoreError: self.init(Self.status(error.kind), error.description, error.hint)
    case let error as LifecycleError:
      self.init(Self.status(error.kind), error.description, error.hint)
    case let error as ModelError: self.init(.failed, error.description, error.hint)
    case let error as PolicyError: self.init(Self.status(error), error.description, error.hint)
    case let error as SampleError:
      self.init(error.code == .noSuchDay ? .wrongUsage : .failed, error.description, error.hint)
    case let error as SystemError: self.init(.failed, error.description, error.hint)
    case let error as ConfigurationError: self.init(.failed, error.description, error.hint)
    case let error as UsageError: self.init(.wrongUsage, error.description, error.hint)
    default: self.init(.failed, "\(error)", nil)
    }
  }

  init(_ status: ExitStatus, _ message: String, _ hint: String?) {
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

  /// A mistake in the words of the command line is wrong usage, one in a file is a failure.
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

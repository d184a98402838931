public import SandboxModel
internal import SystemIO

/// What became of what was interrupted on a device.
public struct RecoveryReport: Sendable {
  /// What was finished or taken back, the oldest first.
  public internal(set) var done: [RecoveredOperation] = []
  /// What could be neither: it is as the interruption left it, and can be recovered later.
  public internal(set) var blocked: [BlockedRecovery] = []
}

/// What became of an interrupted operation.
public struct RecoveredOperation: Sendable {
  public let operation: InterruptedOperation
  /// Whether it was finished with the container in hand; else it was taken back.
  public internal(set) var isFinished: Bool
  /// How many of its steps were left.
  public internal(set) var steps = 0
  /// What could not get its place, by its path on the device: it is as it was.
  public internal(set) var failed: [PathRemark] = []
  /// Why it was taken back though all was staged; nothing where that is what was to be done.
  public internal(set) var reason: String?
}

/// An interrupted operation that can be neither finished nor taken back now.
public struct BlockedRecovery: Sendable {
  public let operation: InterruptedOperation
  /// What hinders it.
  public let error: LifecycleError

  /// What an operation on an app is refused with because of this; nothing where it may go on.
  public func refusal(of app: BundleIdentifier) -> LifecycleError? {
    refusal(of: [LogicalContainer.app(app)])
  }

  /// The same for what a plan changes.
  public func refusal(of plan: AppChangePlan) -> LifecycleError? { refusal(of: plan.subjects) }

  /// The same for what a restore changes.
  public func refusal(of plan: DeviceRestorePlan) -> LifecycleError? {
    refusal(of: plan.subjects)
  }

  private func refusal(of subjects: [ByteString]) -> LifecycleError? {
    if subjects.contains(where: operation.record.subjects.contains) { return error }
    // An app may be without its bundle till then: nobody can tell which groups it shares.
    guard let group = subjects.first(where: { $0.components.first == "groups" }) else {
      return nil
    }
    return LifecycleError(
      error.kind,
      "cannot change '\(group)', which others may share: \(error.description)", hint: error.hint)
  }
}

package import SandboxModel
package import SystemIO

/// The result of the recovery of a device.
package struct RecoveryReport: Sendable {
  /// The operations that were finished or rolled back, oldest first.
  package internal(set) var done: [RecoveredOperation] = []
  /// The operations that could be neither finished nor rolled back. They are unchanged and can be
  /// recovered later.
  package internal(set) var blocked: [BlockedRecovery] = []
}

/// The result for an interrupted operation.
package struct RecoveredOperation: Sendable {
  package let operation: InterruptedOperation
  /// Whether the current container was finished. Otherwise it was rolled back.
  package internal(set) var isFinished: Bool
  /// The number of steps that were left.
  package internal(set) var steps = 0
  /// The entries that could not be placed and are unchanged, by their paths on the device.
  package internal(set) var failed: [PathRemark] = []
  /// The reason for a rollback although everything was staged; nil if the rollback was expected.
  package internal(set) var reason: String?
}

/// An interrupted operation that currently can be neither finished nor rolled back.
package struct BlockedRecovery: Sendable {
  package let operation: InterruptedOperation
  /// The reason.
  package let error: OperationError

  /// Returns the error that refuses an operation on an app because of this one, or nil if the
  /// operation may continue.
  package func refusal(of app: BundleIdentifier) -> OperationError? {
    refusal(of: [LogicalContainer.app(app)])
  }

  /// Returns the error that refuses an operation on apps, groups and directories because of this
  /// one, or nil if the operation may continue.
  package func refusal(of subjects: [ByteString]) -> OperationError? {
    if subjects.contains(where: operation.record.subjects.contains) { return error }
    // An app may have no bundle until the recovery, so which groups it shares is unknown.
    guard let group = subjects.first(where: { $0.components.first == "groups" }) else {
      return nil
    }
    return OperationError(
      error.kind,
      "cannot change '\(group)', which other apps may share: \(error.description)",
      hint: error.hint)
  }
}

package import SandboxModel
package import SystemIO

/// The result of the recovery of a device.
package struct RecoveryReport: Sendable {
  /// The operations that were finished or rolled back, oldest first.
  package internal(set) var done: [Recovered] = []
  /// The operations that could be neither finished nor rolled back. They are unchanged and can be
  /// recovered later.
  package internal(set) var blocked: [Blocked] = []
  /// The interrupted operations that a preview leaves unchanged, oldest first.
  package private(set) var pending: [InterruptedOperation] = []
  /// The error of a preview that could not read the journal.
  package private(set) var unreadable: OperationError?

  /// Returns the interrupted operations of a device, without recovering them.
  package static func pending(on device: Device) -> RecoveryReport {
    var report = RecoveryReport()
    do throws(OperationError) {
      report.pending = try InterruptedOperation.all(on: device.root)
    } catch { report.unreadable = error }
    return report
  }

  /// Whether an operation is interrupted, or may be, since the journal cannot be read.
  package var isPending: Bool { unreadable != nil || !pending.isEmpty }

  /// Refuses an operation on apps, groups and directories that a blocked recovery prevents.
  ///
  /// - Throws: the first error of `Blocked.refusal(of:)`.
  package func requireNoneBlocks(_ subjects: [ByteString]) throws(OperationError) {
    if let error = blocked.lazy.compactMap({ $0.refusal(of: subjects) }).first { throw error }
  }

  /// Refuses an operation on an app that a blocked recovery prevents.
  ///
  /// - Throws: the first error of `Blocked.refusal(of:)`.
  package func requireNoneBlocks(_ app: BundleIdentifier) throws(OperationError) {
    try requireNoneBlocks([LogicalContainer.app(app)])
  }

  /// The result for an interrupted operation.
  package struct Recovered: Sendable {
    package let operation: InterruptedOperation
    /// Whether the current container was finished. Otherwise it was rolled back.
    package internal(set) var isFinished: Bool
    /// The number of steps that were left.
    package internal(set) var steps = 0
    /// The entries whose steps could not be applied and that are unchanged, by their paths on the
    /// device.
    package internal(set) var failed: [PathRemark] = []
    /// The reason for a rollback although everything was staged; nil if the rollback was expected.
    package internal(set) var reason: String?
  }

  /// An interrupted operation that currently can be neither finished nor rolled back.
  package struct Blocked: Sendable {
    package let operation: InterruptedOperation
    /// The reason.
    package let error: OperationError

    /// Returns the error that refuses an operation on apps, groups and directories because of this
    /// one, or nil if the operation may continue.
    package func refusal(of subjects: [ByteString]) -> OperationError? {
      if subjects.contains(where: operation.record.subjects.contains) { return error }
      // An app may have no bundle until the recovery, so which groups it shares is unknown.
      guard let group = subjects.first(where: { $0.components.first == "groups" }) else {
        return nil
      }
      return OperationError(
        error.kind, code: error.code, "change", subject: group,
        reason: "other apps may share it: \(error.description)", hint: error.hint)
    }
  }
}

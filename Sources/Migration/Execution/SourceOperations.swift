internal import DeviceTransaction
internal import SystemIO

/// The operations of this program on the source of a migration.
enum SourceOperations {
  /// Refuses a source with an operation on one of the subjects that is in progress or was
  /// interrupted: a part of the data may be in a staging directory, or have another state.
  ///
  /// - Throws: `busy`, or `failed` if the source has to be recovered or its journal is unreadable.
  static func requireNone(
    on subjects: [ByteString], in root: ByteString
  ) throws(OperationError) {
    try AppLocks.requireFree(subjects, root: root, to: "migrate")
    for left in try InterruptedOperation.all(on: root) {
      guard let subject = subjects.first(where: left.record.subjects.contains) else { continue }
      throw OperationError(
        .failed, code: .recoveryRequired, "migrate", subject: subject,
        reason: "the \(left.operation) of '\(left.container)' in '\(root)' was interrupted, and "
          + "its data may be incomplete",
        hint: "run 'sandboxctl recover --root \(ShellWord.text(root))' first, or add '--force'")
    }
  }
}

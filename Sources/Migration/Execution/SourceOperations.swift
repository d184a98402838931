internal import ArchiveStore
internal import DeviceTransaction
internal import SandboxModel
package import SystemIO

/// The operations of this program on the source of a migration.
enum SourceOperations {
  /// Refuses a source with an operation on one of the subjects that is in progress or was
  /// interrupted: a part of the data may be in a staging directory, or have another state.
  ///
  /// - Throws: `busy`, or `failed` if the source has to be recovered or its journal is unreadable.
  static func requireNone(
    on subjects: [ByteString], in root: ByteString, _ layout: Layout
  ) throws(OperationError) {
    try AppLocks.requireFree(subjects, root: root, to: "migrate")
    for left in try InterruptedOperation.all(on: root) {
      guard let subject = subjects.first(where: left.record.subjects.contains) else { continue }
      // The root alone may not identify the layout.
      let device = "--root \(ShellWord.text(root)) --layout \(layout.rawValue)"
      throw OperationError(
        .failed, code: .recoveryRequired, "migrate", subject: subject,
        reason: "the \(left.operation) of '\(left.container)' in '\(root)' was interrupted, and "
          + "its data may be incomplete",
        hint: "run 'sandboxctl recover \(device)' first, or add '--force'")
    }
  }
}

extension AppMigration {
  /// Refuses a source with another operation on the app, unless there is nothing to copy. Outside
  /// sandboxes the home directory itself is the device.
  ///
  /// - Throws: as `SourceOperations.requireNone`.
  package func requireSourceWithoutOperations() throws(OperationError) {
    if isIdle { return }
    let source = route.from
    let root = source.packaging.deviceDirectory.map { source.home.appending($0) } ?? source.home
    try SourceOperations.requireNone(on: [source.subject], in: root, source.packaging.layout)
  }
}

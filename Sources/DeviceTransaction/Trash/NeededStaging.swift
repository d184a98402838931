package import SystemIO

/// The staging directories whose entries other interrupted operations of a device need: their
/// recovery puts the entries in place, or keeps them.
///
/// Operations on several apps stage in one directory: that of all apps, or a home directory. A lock
/// shows only whether the process of a staging directory lives, so these directories would seem
/// abandoned.
package struct NeededStaging: Sendable {
  /// The names, which are random.
  private var names: Set<ByteString> = []
  /// The directories in which all staging directories are kept.
  private var parents: Set<ByteString> = []
  /// Whether the journal could not be read, so that all are kept.
  private var isUnknown = false

  /// No directories.
  package init() {}

  /// Reads the journal of a device.
  ///
  /// - Parameter id: The ID of the operation that is not counted.
  package init(on root: ByteString, besides id: String) {
    do throws(OperationError) {
      for operation in try InterruptedOperation.all(on: root) where operation.id != id {
        add(operation.record)
      }
    } catch { isUnknown = true }
  }

  private mutating func add(_ record: JournalRecord) {
    // The recovery of an operation that was only preparing removes its staged entries.
    if record.state == .preparing { return }
    for root in record.roots {
      names.formUnion(root.path.components.filter { StagingDirectory.isAny($0) })
    }
    // Without steps, the journal of a rollback does not name the entries that are still to be kept.
    if record.state == .returning, record.roots.isEmpty { parents.formUnion(record.staging) }
  }

  /// Whether a staging directory is needed.
  func includes(_ name: ByteString, in parent: ByteString) -> Bool {
    isUnknown || names.contains(name) || parents.contains(parent)
  }
}

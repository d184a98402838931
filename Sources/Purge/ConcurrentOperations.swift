internal import DeviceTransaction
internal import SandboxModel
internal import SystemIO

/// Operations of this program on an app, in progress or interrupted. A purge skips the app until
/// they have ended or were recovered. The purge itself takes no lock, since a lock file would
/// remain and needs space on a volume that may be full; instead, each deletion is checked against
/// the scan.
package struct ConcurrentOperations {
  private let root: ByteString
  /// The subjects of interrupted operations, each with the kind of the operation.
  private var interrupted: [ByteString: String] = [:]
  /// The reason why the journal cannot be read.
  private var trouble: String?

  init(_ device: Device) {
    root = device.root
    do throws(OperationError) {
      for operation in try InterruptedOperation.all(on: root) {
        for subject in operation.record.subjects {
          interrupted[subject] = operation.operation
        }
      }
    } catch { trouble = error.description }
  }

  /// Returns the reason if an operation is using one of the containers, or nil if none is.
  func sign(among containers: [Container]) -> String? {
    if let trouble { return trouble }
    let subjects = Set(containers.map(\.logicalPrefix.subject)).sorted()
    for subject in subjects {
      if let operation = interrupted[subject] {
        return "an interrupted \(operation) of '\(subject)' needs 'sandboxctl recover'"
      }
    }
    return AppLocks.held(among: subjects, root: root).map {
      "another operation on '\($0)' is in progress"
    }
  }
}

internal import SandboxModel
internal import SystemIO

/// Operations of this program that have an app in hand, going on or interrupted: a purge leaves the app
/// alone till they have ended, or were finished or taken back. It takes no lock itself, which would
/// leave something behind and needs room on a volume that has none: each of its steps holds what it
/// deletes against what it saw.
struct ConcurrentOperations {
  private let root: ByteString
  /// What interrupted operations had in hand, each with what it was.
  private var interrupted: [ByteString: String] = [:]
  /// Why that cannot be known.
  private var trouble: String?

  init(_ device: Device) {
    root = device.root
    do throws(LifecycleError) {
      for operation in try InterruptedOperation.all(on: root) {
        for subject in operation.record.subjects {
          interrupted[subject] = operation.operation
        }
      }
    } catch { trouble = error.description }
  }

  /// What says that an operation has one of some containers in hand.
  func sign(among containers: [Container]) -> String? {
    if let trouble { return trouble }
    let subjects = Set(containers.map(\.logicalPrefix.subject)).sorted()
    for subject in subjects {
      if let operation = interrupted[subject] {
        return "an interrupted \(operation) of '\(subject)' waits for 'sandboxctl recover'"
      }
    }
    return AppLocks.held(among: subjects, root: root).map {
      "another operation on '\($0)' is going on"
    }
  }
}

package import AppPackages
package import ArchiveStore
internal import SandboxModel
package import SystemIO

/// The result of an operation on an app.
package struct AppChangeReport: Sendable {
  /// The snapshot of the previous state.
  package internal(set) var saved: StoredSnapshot?
  /// The ID of the operation whose trash directory has the replaced entries; nil if nothing was
  /// replaced.
  package internal(set) var trash: String?
  /// The logical paths of removed entries that are not in the plan, since a process created them
  /// between the plan and the exchange. They are in the trash.
  package internal(set) var unplanned: [PathRemark] = []
  /// The logical paths of changes that failed.
  package internal(set) var failed: [PathRemark] = []
  /// The entries and bytes written from the package.
  package internal(set) var written = AppPackage.Size()
  /// The duration of the exchange in seconds, from the first rename to the last.
  package internal(set) var exchangeSeconds = 0.0
  /// The total duration in seconds.
  package internal(set) var seconds = 0.0

  /// Whether all was done as planned.
  package var isComplete: Bool { unplanned.isEmpty && failed.isEmpty }
}

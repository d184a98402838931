public import ArchiveStore
public import SandboxModel

/// The result of an operation on an app.
public struct AppChangeReport: Sendable {
  /// The snapshot of the previous state.
  public internal(set) var saved: StoredSnapshot?
  /// The ID of the operation whose trash directory has the replaced entries; nil if nothing was
  /// replaced.
  public internal(set) var trash: String?
  /// The logical paths of removed entries that are not in the plan, since a process created them
  /// between the plan and the exchange. They are in the trash.
  public internal(set) var unplanned: [PathRemark] = []
  /// The logical paths of changes that failed.
  public internal(set) var failed: [PathRemark] = []
  /// The entries and bytes written from the package.
  public internal(set) var written = PackageSize()
  /// The duration of the exchange in seconds, from the first rename to the last.
  public internal(set) var exchangeSeconds = 0.0
  /// The total duration in seconds.
  public internal(set) var seconds = 0.0

  /// Whether all was done as planned.
  public var isComplete: Bool { unplanned.isEmpty && failed.isEmpty }
}

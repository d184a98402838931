public import ArchiveStore
public import SandboxModel

/// What became of an app.
public struct AppChangeReport: Sendable {
  /// The snapshot of what was there.
  public internal(set) var saved: StoredSnapshot?
  /// The operation whose directory in the trash has what gave way; nothing where nothing did.
  public internal(set) var trash: String?
  /// What was in what went and the plan did not know, by its logical path: something wrote it between
  /// the plan and the exchange. It is in the trash.
  public internal(set) var unplanned: [PathRemark] = []
  /// What could not be done, by logical path.
  public internal(set) var failed: [PathRemark] = []
  /// What was written of the package.
  public internal(set) var written = PackageSize()
  /// How long the exchange took, from the first rename to the last, in seconds.
  public internal(set) var exchangeSeconds = 0.0
  /// How long all of it took, in seconds.
  public internal(set) var seconds = 0.0

  /// Whether all was done as planned.
  public var isComplete: Bool { unplanned.isEmpty && failed.isEmpty }
}

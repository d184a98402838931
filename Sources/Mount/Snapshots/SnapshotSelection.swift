package import ArchiveStore

/// The snapshots and apps that a mount shows.
package struct SnapshotSelection: Sendable {
  /// Whether a snapshot is shown.
  package var isShown: @Sendable (SnapshotHead) -> Bool
  /// Whether an app of a shown snapshot is listed.
  package var isListed: @Sendable (AppRecord) -> Bool
  /// Whether a shown snapshot can be the latest one.
  package var canBeLatest: @Sendable (SnapshotHead) -> Bool

  /// Selects snapshots and apps; all by default. The latest is then the newest one of a whole
  /// device that was not made by a restore.
  package init(
    isShown: @escaping @Sendable (SnapshotHead) -> Bool = { _ in true },
    isListed: @escaping @Sendable (AppRecord) -> Bool = { _ in true },
    canBeLatest: @escaping @Sendable (SnapshotHead) -> Bool = {
      $0.scope == .device && $0.reason != .preRestore
    }
  ) {
    (self.isShown, self.isListed, self.canBeLatest) = (isShown, isListed, canBeLatest)
  }
}

internal import ArchiveStore
internal import SystemIO

extension SnapshotHead {
  /// Whether the snapshot has an app of that name.
  func holds(_ name: String) -> Bool {
    apps.contains { app in
      (app.identifier == name || app.isCalled(name)) && !app.containers.isEmpty
    }
  }
}

extension Snapshot {
  /// Returns the identifiers of the named apps.
  ///
  /// - Throws: `LifecycleError` for a name that matches no app of the snapshot, or several.
  func identifiers(of names: [String]) throws -> [String] {
    try names.map { try app(ByteString($0)).identifier }
  }
}

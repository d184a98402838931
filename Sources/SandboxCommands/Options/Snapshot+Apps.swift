internal import ArchiveStore
internal import SystemIO

extension SnapshotHead {
  /// Whether an app that a user may mean by a name is in it.
  func holds(_ name: String) -> Bool {
    apps.contains { app in
      (app.identifier == name || app.isCalled(name)) && !app.containers.isEmpty
    }
  }
}

extension Snapshot {
  /// The identifiers of the apps that a user names.
  ///
  /// - Throws: for a name that no app of the snapshot has, or several.
  func identifiers(of names: [String]) throws -> [String] {
    try names.map { try app(ByteString($0)).identifier }
  }
}

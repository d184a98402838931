package import AppPackages
internal import PolicyEngine
package import SystemIO

extension MigrationTable {
  /// Creates the table of a macOS app's container-migration.plist: each of its moves is a place
  /// with a path outside the sandbox and one in the container. Paths that the list only links are
  /// not moved, so they become notes instead of places.
  ///
  /// - Parameters:
  ///   - app: The bundle identifier.
  ///   - title: The display name of the app.
  ///   - file: The name of the property list in messages.
  package init(
    _ migration: ContainerMigration, of app: ByteString, title: String? = nil, file: String
  ) {
    let location = PolicyLocation(file: file, line: 1, column: 1)
    let places = migration.moves.enumerated().map { index, move in
      Place(
        id: "move-\(index + 1)",
        paths: [.host: Path(move.source), .macOS: Path(move.destination)],
        source: "container-migration.plist, Move (App Sandbox Design Guide)", location: location)
    }
    let notes = migration.links.map { path in
      Note(
        for: [.macOS],
        "'\(path)' is not copied: the app's new container gets a link to it in the home directory")
    }
    self.init(
      name: app.description, title: title, apps: [.host: [app], .macOS: [app]], places: places,
      notes: notes, location: location)
  }
}

package import SystemIO

/// The data that an app's container-migration.plist moves into its container when it is first
/// created.
///
/// All paths are relative, in the form of `PackageEntry.path`, with their variables replaced.
/// Sources are relative to the user's home directory, destinations to the container's `Data`.
/// Source: App Sandbox Design Guide, Migrating an App to a Sandbox.
package struct ContainerMigration: Hashable, Sendable {
  /// The moves, in the order of the list.
  package let moves: [Move]
  /// The paths that stay in place, with a link to them in the container.
  package let links: [ByteString]

  /// A move from the home directory into the container.
  package struct Move: Hashable, Sendable {
    /// The source, relative to the user's home directory.
    package let source: ByteString
    /// The destination, relative to the container's `Data`.
    package let destination: ByteString

    /// Creates a move with paths that the caller has checked.
    package init(source: ByteString, destination: ByteString) {
      self.source = source
      self.destination = destination
    }
  }

  /// Creates a migration.
  package init(moves: [Move] = [], links: [ByteString] = []) {
    self.moves = moves
    self.links = links
  }
}

public import SystemIO

/// The data that an app's container-migration.plist moves into its container when it is first
/// created.
///
/// All paths are relative, in the form of `PackageEntry.path`, with their variables replaced.
/// Sources are relative to the user's home directory, destinations to the container's `Data`.
/// Source: App Sandbox Design Guide, Migrating an App to a Sandbox.
public struct ContainerMigration: Hashable, Sendable {
  /// The moves, in the order of the list.
  public let moves: [Move]
  /// The paths that stay in place, with a link to them in the container.
  public let links: [ByteString]

  /// A move from the home directory into the container.
  public struct Move: Hashable, Sendable {
    /// The source, relative to the user's home directory.
    public let source: ByteString
    /// The destination, relative to the container's `Data`.
    public let destination: ByteString

    /// Creates a move with paths that the caller has checked.
    public init(source: ByteString, destination: ByteString) {
      self.source = source
      self.destination = destination
    }
  }

  /// Creates a migration.
  public init(moves: [Move] = [], links: [ByteString] = []) {
    self.moves = moves
    self.links = links
  }
}

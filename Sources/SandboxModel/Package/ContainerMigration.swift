public import SystemIO

/// What an app's container-migration.plist moves into its container when that is first made.
///
/// All paths are relative, of the form that `PackageEntry.path` has, and their variables are
/// replaced: those outside start at the user's home, those inside at the container's `Data`.
/// Source: App Sandbox Design Guide, Migrating an App to a Sandbox.
public struct ContainerMigration: Hashable, Sendable {
  /// What moves, in the order of the list.
  public let moves: [Move]
  /// What stays where it is, with a link to it in the container.
  public let links: [ByteString]

  /// A move from the home into the container.
  public struct Move: Hashable, Sendable {
    /// Relative to the user's home.
    public let source: ByteString
    /// Relative to the container's `Data`.
    public let destination: ByteString

    /// Makes a move; who makes it has checked the paths.
    public init(source: ByteString, destination: ByteString) {
      self.source = source
      self.destination = destination
    }
  }

  /// Makes a migration.
  public init(moves: [Move] = [], links: [ByteString] = []) {
    self.moves = moves
    self.links = links
  }
}

package import SandboxModel
package import SystemIO

/// The directories that the platform creates in a container and that apps should not mark.
package enum SystemDirectories {
  /// Whether a path in a container is the container's root or one of these directories.
  package static func has(
    _ path: ByteString, in kind: ContainerKind, of layout: Layout
  ) -> Bool {
    path.isEmpty || names(in: kind, of: layout).contains(path)
  }

  private static func names(in kind: ContainerKind, of layout: Layout) -> Set<ByteString> {
    switch (layout, kind) {
    case (.coreSimulator, .group), (.macOS, .group): library
    case (.coreSimulator, _), (.macOS, _): home
    case (.flatpak, .data): ["data", "config", "cache", ".local", ".local/share", ".local/state"]
    case (.android, .data):
      ["files", "databases", "shared_prefs", "cache", "code_cache", "no_backup"]
    default: []
    }
  }

  private static let library: Set<ByteString> = [
    "Library", "Library/Application Support", "Library/Caches", "Library/Preferences",
  ]
  private static let home = library.union(["Documents", "Documents/Inbox", "SystemData", "tmp"])
}

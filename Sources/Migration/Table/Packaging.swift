package import SystemIO

/// The form in which an app is installed. It decides where in the user's home directory the app's
/// data is.
package enum Packaging: String, CaseIterable, Sendable, Hashable {
  /// Outside any sandbox, in the directories of the base directory specification and in dotted
  /// directories.
  case host
  /// A package of Debian or a derivative. Its data is in the same places as for `host`, unless a
  /// table states another place.
  case deb
  /// A Flatpak: `~/.var/app/ID`.
  case flatpak
  /// A snap: `~/snap/NAME`, with `common` and a directory for each revision.
  case snap
  /// A sandboxed app of macOS: `~/Library/Containers/ID/Data`.
  case macOS = "macos"

  /// The forms that a table in YAML can name; the others are read from an app's property list.
  static let written: [Packaging] = [.host, .deb, .flatpak, .snap]

  /// Whether apps of this form have a separate directory.
  package var isSandbox: Bool { self != .host && self != .deb }

  /// Returns the directory of an app's data, relative to the home directory; empty outside
  /// sandboxes.
  ///
  /// - Parameter app: The identifier of the Flatpak or of the macOS app, or the snap's name.
  package func container(of app: ByteString) -> ByteString {
    switch self {
    case .host, .deb: ""
    case .flatpak: ByteString(".var/app").appending(app)
    case .snap: ByteString("snap").appending(app)
    case .macOS: ByteString("Library/Containers").appending(app).appending("Data")
    }
  }
}

/// One side of a migration: a form of an app in a home directory.
package struct MigrationEnd: Hashable, Sendable {
  /// The form of the app.
  package let packaging: Packaging
  /// The identifier of the Flatpak or of the macOS app, or the snap's name. Outside sandboxes it
  /// only names the app.
  package let app: ByteString
  /// The home directory, an absolute path without a final slash.
  package let home: ByteString

  /// Creates a side.
  package init(_ packaging: Packaging, app: ByteString, home: ByteString) {
    self.packaging = packaging
    self.app = app
    self.home = home
  }

  /// The directory of the app's data, relative to the home directory; empty outside sandboxes.
  package var container: ByteString { packaging.container(of: app) }

  /// Returns the path that a running app uses for an entry.
  ///
  /// A Flatpak sees directories that it persists (`--persist`) in its home directory, and `config`,
  /// `data`, `cache` and `.local/state` at their real paths (flatpak-run(1); Flatpak documentation,
  /// Requirements & Conventions). All other apps see real paths.
  ///
  /// - Parameter path: The entry, relative to the home directory.
  package func seenPath(of path: ByteString) -> ByteString {
    guard packaging == .flatpak, path.isWithin(container) else { return home.appending(path) }
    let inner = path.relative(to: container)
    let isReal = inner.isEmpty || Self.realDirectories.contains { inner.isWithin($0) }
    return home.appending(isReal ? path : inner)
  }

  /// The directories of a Flatpak's data that it sees at their real paths.
  private static let realDirectories: [ByteString] = ["config", "data", "cache", ".local/state"]
}

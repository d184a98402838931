package import SystemIO

/// The files outside its own directory that a Flatpak can use.
///
/// Source: flatpak-metadata(5), `[Context]`, `filesystems`.
package struct FlatpakAccess: Sendable, Hashable {
  /// The identifier of the app.
  private let app: ByteString
  /// The granted directories, as absolute paths, and whether each may be written.
  private var granted: [ByteString: Bool] = [:]
  /// The directories that a later entry withdrew.
  private var withdrawn: Set<ByteString> = []
  private let home: ByteString

  /// Creates the access of an app.
  ///
  /// - Parameters:
  ///   - app: The identifier.
  ///   - home: The home directory, an absolute path.
  ///   - filesystems: The entries of `filesystems`, those of overrides after those of the app's
  ///     metadata. Unknown ones grant nothing.
  ///   - userDirectories: The user's directories by their names in the entries (`download`),
  ///     absolute paths; those that are missing grant nothing.
  package init(
    of app: ByteString, home: ByteString, filesystems: [ByteString],
    userDirectories: [ByteString: ByteString] = [:]
  ) {
    (self.app, self.home) = (app, home)
    for entry in filesystems { add(entry, userDirectories) }
    // The app's own directory, and what it persists in the home directory, need no permission.
    granted[home.appending(Packaging.flatpak.container(of: app))] = true
  }

  private mutating func add(
    _ entry: ByteString, _ userDirectories: [ByteString: ByteString]
  ) {
    let isWithdrawn = entry.bytes.first == UInt8(ascii: "!")
    let parts = (isWithdrawn ? entry.bytes.dropFirst() : entry.bytes).split(
      separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    guard parts.count <= 2, let first = parts.first else { return }
    let isReadOnly = parts.count == 2 && parts[1].elementsEqual("ro".utf8)
    for path in paths(ByteString(first), userDirectories) {
      if isWithdrawn {
        granted[path] = nil
        withdrawn.insert(path)
      } else {
        granted[path] = !isReadOnly
        withdrawn.remove(path)
      }
    }
  }

  /// Returns the absolute paths of an entry without its mode.
  private func paths(
    _ entry: ByteString, _ userDirectories: [ByteString: ByteString]
  ) -> [ByteString] {
    if entry.components.contains("..") { return [] }
    if entry.isAbsolute { return [entry] }
    let parts = entry.components
    let rest = ByteString(joining: parts.dropFirst())
    switch parts.first {
    case "host": return parts.count == 1 ? Self.host : []
    case "home", "~": return [home.appending(rest)]
    case "xdg-config": return [home.appending(".config").appending(rest)]
    case "xdg-cache": return [home.appending(".cache").appending(rest)]
    case "xdg-data": return [home.appending(".local/share").appending(rest)]
    case let name? where name.bytes.starts(with: "xdg-".utf8):
      return userDirectories[ByteString(name.bytes.dropFirst(4))].map { [$0.appending(rest)] } ?? []
    default: return []
    }
  }

  /// The directories of `host` that can have a user's data; the system's own ones are not included.
  private static let host: [ByteString] = ["/home", "/media", "/mnt", "/opt", "/run/media", "/srv"]

  /// Whether the app can use an absolute path.
  ///
  /// - Parameter writing: Whether write access is required.
  package func permits(_ path: ByteString, writing: Bool = true) -> Bool {
    guard path.isAbsolute, !path.components.contains("..") else { return false }
    var above = path
    while true {
      if withdrawn.contains(above) { return false }
      if let canWrite = granted[above] { return canWrite || !writing }
      if above == "/" { return false }
      above = above.parent
    }
  }

  /// Returns the command that grants access to the paths that the app cannot use yet, or nil if it
  /// can use all of them. Paths within another one are omitted, and so are paths with unprintable
  /// characters, which the user could not check.
  package func overrideCommand(for paths: some Sequence<ByteString>) -> String? {
    let missing = Set(paths).filter { $0.isAbsolute && $0 != "/" && !permits($0) }.sorted()
    let topmost = missing.filter { path in
      !missing.contains { $0 != path && path.isWithin($0) }
    }
    let options = topmost.filter(ShellWord.isPlainArgument).map { path in
      ShellWord.text(ByteString("--filesystem=").concatenating(path))
    }
    guard !options.isEmpty, ShellWord.isPlainArgument(app) else { return nil }
    return "flatpak override --user \(options.joined(separator: " ")) \(ShellWord.text(app))"
  }
}

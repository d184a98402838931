internal import SystemIO

/// Paths in text output.
enum Paths {
  /// Returns a path with `~` for the user's home.
  static func text(_ path: ByteString) -> String {
    guard let home = Host.environment("HOME"), home.isAbsolute, home.count > 1 else {
      return path.description
    }
    let homes = [home, try? Host.realPath(home)].compactMap { $0 }
    guard let home = homes.first(where: { path.isWithin($0) }) else { return path.description }
    return "~\(ByteString(path.bytes.dropFirst(home.count)))"
  }

  /// Returns the mount point of a path's volume.
  static func volume(of path: ByteString) -> String { text(Host.mountPoint(of: path)) }
}

internal import SystemIO

/// Paths as people read them.
enum Paths {
  /// A path with `~` for the user's home.
  static func text(_ path: ByteString) -> String {
    guard let home = Host.environment("HOME"), home.isAbsolute, home.count > 1 else {
      return path.description
    }
    let homes = [home, try? Host.realPath(home)].compactMap { $0 }
    guard let home = homes.first(where: { path.isWithin($0) }) else { return path.description }
    return "~\(ByteString(path.bytes.dropFirst(home.count)))"
  }

  /// The volume that a path lies on, by where it is mounted.
  static func volume(of path: ByteString) -> String { text(Host.mountPoint(of: path)) }
}

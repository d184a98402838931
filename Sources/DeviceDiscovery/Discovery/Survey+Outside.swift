internal import SandboxModel
internal import SystemIO

// Access to installations outside the device's root.
extension Survey {
  /// Reads a text file in nested directories without following links, or returns nil if it does not
  /// exist.
  mutating func text(
    _ name: ByteString, _ directories: [ByteString], of parent: borrowing Directory,
    as path: ByteString
  ) -> [UInt8]? {
    if directories.isEmpty {
      return bytes(of: name, in: parent, as: path.appending(name), limit: Self.textLimit)
    }
    let here = directories.reduce(path) { $0.appending($1) }
    guard let directory = inner(directories, of: parent, as: path) else { return nil }
    return bytes(of: name, in: directory, as: here.appending(name), limit: Self.textLimit)
  }

  /// Returns the components of a link's target, or nil, with a warning unless it has the expected
  /// number of plain components.
  mutating func linked(
    _ name: ByteString, in directory: borrowing Directory, as path: ByteString, components: Int
  ) -> [ByteString]? {
    do {
      guard try directory.statusIfPresent(name) != nil else { return nil }
      let target = try directory.target(of: name)
      let parts = target.components
      if parts.count == components, !target.isAbsolute, !parts.contains("..") { return parts }
      warn(
        .wrongValue, at: path.appending(name),
        because: "it is a link to '\(target)', which is unexpected")
    } catch {
      warn(.unreadable, at: path.appending(name), because: "it cannot be read: \(error.reason)")
    }
    return nil
  }

  /// Opens a directory outside the root, or returns nil if it does not exist.
  mutating func outside(_ path: ByteString) -> Directory? {
    do {
      return try Directory.open(path: path)
    } catch {
      if !error.isMissing {
        warn(.unreadable, at: path, because: "it cannot be opened: \(error.reason)")
      }
      return nil
    }
  }

  /// Opens a nested directory without following links, or returns nil if it does not exist.
  mutating func inner(
    _ names: [ByteString], of parent: borrowing Directory, as path: ByteString
  ) -> Directory? {
    do {
      guard let first = names.first, try parent.statusIfPresent(first)?.kind == .directory else {
        return nil
      }
      let directory = try parent.directory(first)
      if names.count == 1 { return directory }
      return inner(Array(names.dropFirst()), of: directory, as: path.appending(first))
    } catch {
      warn(.unreadable, at: path, because: "it cannot be opened: \(error.reason)")
      return nil
    }
  }
}

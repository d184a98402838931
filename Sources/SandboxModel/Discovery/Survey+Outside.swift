internal import SystemIO

// What lies outside the device's root: installations, which say what is installed.
extension Survey {
  /// Reads a text file some directories down without following links; nil when there is none.
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

  /// The components of a link's target, when it is a link of that many plain ones.
  mutating func linked(
    _ name: ByteString, in directory: borrowing Directory, as path: ByteString, components: Int
  ) -> [ByteString]? {
    do {
      guard try directory.statusIfPresent(name) != nil else { return nil }
      let target = try directory.target(of: name)
      let parts = target.components
      if parts.count == components, !target.isAbsolute, !parts.contains("..") { return parts }
      warn(.wrongValue, path.appending(name), "it is a link to '\(target)', which is not expected")
    } catch {
      warn(.unreadable, path.appending(name), "it cannot be read: \(error.reason)")
    }
    return nil
  }

  /// Opens a directory outside the root; nil when there is none.
  mutating func outside(_ path: ByteString) -> Directory? {
    do {
      return try Directory.open(path: path)
    } catch {
      if !error.isMissing { warn(.unreadable, path, "it cannot be opened: \(error.reason)") }
      return nil
    }
  }

  /// Opens a directory some levels down without following links; nil when there is none.
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
      warn(.unreadable, path, "it cannot be opened: \(error.reason)")
      return nil
    }
  }
}

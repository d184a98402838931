internal import SystemIO

// What lies outside the device's root: installations, which say what is installed.
extension Survey {
  /// Reads a text file some folders down without following links; nil when there is none.
  mutating func text(
    _ name: ByteString, _ folders: [ByteString], of parent: borrowing Folder, as path: ByteString
  ) -> [UInt8]? {
    if folders.isEmpty {
      return bytes(of: name, in: parent, as: path.appending(name), limit: Self.textLimit)
    }
    let here = folders.reduce(path) { $0.appending($1) }
    guard let folder = inner(folders, of: parent, as: path) else { return nil }
    return bytes(of: name, in: folder, as: here.appending(name), limit: Self.textLimit)
  }

  /// The components of a link's target, when it is a link of that many plain ones.
  mutating func linked(
    _ name: ByteString, in folder: borrowing Folder, as path: ByteString, components: Int
  ) -> [ByteString]? {
    do {
      guard try folder.statusIfPresent(name) != nil else { return nil }
      let target = try folder.target(of: name)
      let parts = target.components
      if parts.count == components, !target.isAbsolute, !parts.contains("..") { return parts }
      warn(.wrongValue, path.appending(name), "it is a link to '\(target)', which is not expected")
    } catch {
      warn(.unreadable, path.appending(name), "it cannot be read: \(error.reason)")
    }
    return nil
  }

  /// Opens a folder outside the root; nil when there is none.
  mutating func outside(_ path: ByteString) -> Folder? {
    do {
      return try Folder.open(path: path)
    } catch {
      if !error.isMissing { warn(.unreadable, path, "it cannot be opened: \(error.reason)") }
      return nil
    }
  }

  /// Opens a folder some levels down without following links; nil when there is none.
  mutating func inner(
    _ names: [ByteString], of parent: borrowing Folder, as path: ByteString
  ) -> Folder? {
    do {
      guard let first = names.first, try parent.statusIfPresent(first)?.kind == .directory else {
        return nil
      }
      let folder = try parent.folder(first)
      if names.count == 1 { return folder }
      return inner(Array(names.dropFirst()), of: folder, as: path.appending(first))
    } catch {
      warn(.unreadable, path, "it cannot be opened: \(error.reason)")
      return nil
    }
  }
}

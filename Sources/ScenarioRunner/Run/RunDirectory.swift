internal import SystemIO

/// The private directory of a run, with a directory for each case.
final class RunDirectory: Sendable {
  /// The directory's path, without links.
  let path: ByteString
  private let name: ByteString
  private let parent: ByteString

  /// Makes the directory, which only this user can enter.
  init(in temporary: ByteString) throws(SystemError) {
    parent = try Host.realPath(temporary)
    name = ByteString("sandboxctl-scenario-\(Host.randomHex(bytes: 8))")
    path = parent.appending(name)
    try Directory.open(resolved: parent).createDirectory(name, permissions: 0o700)
  }

  /// Makes a directory in it and returns its path.
  func make(_ name: ByteString) throws(SystemError) -> ByteString {
    try Directory.open(resolved: path).createDirectory(name, permissions: 0o700)
    return path.appending(name)
  }

  /// Removes a directory in it. What cannot be removed is removed with the whole.
  func remove(_ name: ByteString) { try? Directory.open(resolved: path).removeTree(name) }

  /// Removes the directory and everything in it.
  func remove() { try? Directory.open(resolved: parent).removeTree(name) }

  /// Moves a directory in it to another directory, or copies it if that is on another volume. An
  /// entry of the same name there is replaced.
  func move(_ name: ByteString, to target: ByteString, as newName: ByteString) throws {
    let from = try Directory.open(resolved: path)
    let to = try Directory.make(path: target, permissions: 0o700)
    if try to.statusIfPresent(newName) != nil { try to.removeTree(newName) }
    do throws(SystemError) {
      try from.rename(name, to: newName, in: to, replacing: false)
    } catch {
      try to.createDirectory(newName, permissions: 0o700)
      try TreeCopy.run(try from.directory(name), to: try to.directory(newName))
    }
  }
}

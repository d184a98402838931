/// A cursor over the directories below a root that keeps the current chain of directories open.
/// Symbolic links are not followed.
package final class PathLadder {
  private var ladder: DirectoryLadder
  private var current: [ByteString] = []

  package init(root: consuming Directory) { ladder = DirectoryLadder(root: root) }

  /// Calls `body` with the directory at a path. With `making`, missing directories are created,
  /// accessible only to the owner of the directory above.
  package func withDirectory<Result: ~Copyable>(
    _ path: [ByteString], making: Bool = false,
    _ body: (borrowing Directory) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    let common = zip(path, current).prefix { $0 == $1 }.count
    current.removeLast(current.count - common)
    try ladder.ascend(to: common)
    for name in path.dropFirst(common) {
      do throws(SystemError) {
        try ladder.descend(name)
      } catch {
        guard making, error.isAbsent else { throw error }
        try ladder.withDirectory { directory throws(SystemError) in
          try directory.createDirectory(name, permissions: 0o700)
          try directory.inheritOwner(name)
        }
        try ladder.descend(name)
      }
      current.append(name)
    }
    return try ladder.withDirectory(body)
  }
}

extension Directory {
  /// Changes the owner of an entry that root just created to the owner of this directory.
  package func inheritOwner(_ name: ByteString) throws(SystemError) {
    guard Host.userID == 0 else { return }
    let owner = try status()
    if owner.user != 0 { try setOwner(user: owner.user, group: owner.group, of: name) }
  }
}

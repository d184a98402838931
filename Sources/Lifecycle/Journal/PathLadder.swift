internal import SystemIO

/// Goes among the folders below a root by their paths, keeping those on the way open; no link is
/// followed.
final class PathLadder {
  private var ladder: FolderLadder
  private var current: [ByteString] = []

  init(root: consuming Folder) { ladder = FolderLadder(root: root) }

  /// Calls `body` with the folder at a path, made where it is missing with `making`, for the
  /// owner of the one above alone.
  func withFolder<Result: ~Copyable>(
    _ path: [ByteString], making: Bool = false,
    _ body: (borrowing Folder) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    let common = zip(path, current).prefix { $0 == $1 }.count
    current.removeLast(current.count - common)
    try ladder.ascend(to: common)
    for name in path.dropFirst(common) {
      do throws(SystemError) {
        try ladder.descend(name)
      } catch {
        guard making, error.isAbsent else { throw error }
        try ladder.withFolder { folder throws(SystemError) in
          try folder.createFolder(name, permissions: 0o700)
          try ControlOwner.give(name, in: folder)
        }
        try ladder.descend(name)
      }
      current.append(name)
    }
    return try ladder.withFolder(body)
  }
}

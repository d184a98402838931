internal import SystemIO

/// Goes among the directories below a root by their paths, keeping those on the way open; no link is
/// followed.
final class PathLadder {
  private var ladder: DirectoryLadder
  private var current: [ByteString] = []

  init(root: consuming Directory) { ladder = DirectoryLadder(root: root) }

  /// Calls `body` with the directory at a path, made where it is missing with `making`, for the
  /// owner of the one above alone.
  func withDirectory<Result: ~Copyable>(
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
          try ControlOwner.give(name, in: directory)
        }
        try ladder.descend(name)
      }
      current.append(name)
    }
    return try ladder.withDirectory(body)
  }
}

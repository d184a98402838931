internal import SystemIO

/// A place among the directories of a planned tree, in the staging directory or in the target: the directories
/// down to it are open, and going to the next one takes the way over the nearest directory that both
/// lie in.
struct TreeCursor: ~Copyable {
  private let tree: PlannedTree
  private var ladder: DirectoryLadder
  private var current = 0

  /// Begins at the directory that is the tree's first entry.
  init(_ tree: PlannedTree, root: consuming Directory, limit: Int = 64) {
    self.tree = tree
    ladder = DirectoryLadder(root: root, limit: limit)
  }

  /// Goes to the directory that is an entry of the tree. After an error another directory may be reached.
  mutating func go(to directory: Int) throws(SystemError) {
    if directory == current { return }
    var (down, above, reached) = ([Int](), directory, current)
    while above != reached {
      if tree.entries[above].depth >= tree.entries[reached].depth {
        down.append(above)
        above = Int(tree.entries[above].parent)
      } else {
        reached = Int(tree.entries[reached].parent)
      }
    }
    current = reached
    try ladder.ascend(to: Int(tree.entries[reached].depth))
    for next in down.reversed() {
      try ladder.descend(tree.name(next))
      current = next
    }
  }

  /// Calls `body` with the directory that an entry is in.
  mutating func withDirectory<Result: ~Copyable>(
    of number: Int, _ body: (borrowing Directory) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    try go(to: Int(tree.entries[number].parent))
    return try ladder.withDirectory(body)
  }

  /// Calls `body` with the directory that is an entry.
  mutating func within<Result: ~Copyable>(
    _ directory: Int, _ body: (borrowing Directory) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    try go(to: directory)
    return try ladder.withDirectory(body)
  }
}

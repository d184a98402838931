internal import SystemIO

/// A position in the directories of a planned tree, in the staging directory or in the target. The
/// directories down to the position are open; a move to another one goes through the nearest common
/// ancestor.
struct TreeCursor: ~Copyable {
  private let tree: PlannedTree
  private var ladder: DirectoryCursor
  private var current = 0

  /// Creates a cursor at the directory that is the tree's first entry.
  init(_ tree: PlannedTree, root: consuming Directory, limit: Int = 64) {
    self.tree = tree
    ladder = DirectoryCursor(root: root, limit: limit)
  }

  /// Moves to the directory with a number. After an error the cursor may be at another directory.
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

  /// Calls `body` with the directory that contains an entry.
  mutating func withDirectory<Result: ~Copyable>(
    of number: Int, _ body: (borrowing Directory) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    try go(to: Int(tree.entries[number].parent))
    return try ladder.withDirectory(body)
  }

  /// Calls `body` with the directory of a number.
  mutating func within<Result: ~Copyable>(
    _ directory: Int, _ body: (borrowing Directory) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    try go(to: directory)
    return try ladder.withDirectory(body)
  }
}

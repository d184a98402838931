internal import SystemIO

/// A place among the folders of a planned tree, in the staging folder or in the target: the folders
/// down to it are open, and going to the next one takes the way over the nearest folder that both
/// lie in.
struct TreeCursor: ~Copyable {
  private let tree: PlannedTree
  private var ladder: FolderLadder
  private var current = 0

  /// Begins at the folder that is the tree's first entry.
  init(_ tree: PlannedTree, root: consuming Folder, limit: Int = 64) {
    self.tree = tree
    ladder = FolderLadder(root: root, limit: limit)
  }

  /// Goes to the folder that is an entry of the tree. After an error another folder may be reached.
  mutating func go(to folder: Int) throws(SystemError) {
    if folder == current { return }
    var (down, above, reached) = ([Int](), folder, current)
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

  /// Calls `body` with the folder that an entry is in.
  mutating func withFolder<Result: ~Copyable>(
    of number: Int, _ body: (borrowing Folder) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    try go(to: Int(tree.entries[number].parent))
    return try ladder.withFolder(body)
  }

  /// Calls `body` with the folder that is an entry.
  mutating func within<Result: ~Copyable>(
    _ folder: Int, _ body: (borrowing Folder) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    try go(to: folder)
    return try ladder.withFolder(body)
  }
}

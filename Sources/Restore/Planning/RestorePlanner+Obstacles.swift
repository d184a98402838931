internal import ArchiveStore
internal import SystemIO

/// Directories of the snapshot in whose place the target has another entry, and of which at most a
/// part is restored. They keep nothing from being restored unless that part exists.
extension RestorePlanner {
  /// An existing entry in the place of a directory that the walk is in.
  struct Obstacle {
    /// The length of the directory's path in the walk.
    let pathLength: Int
    /// The remark on the existing entry, until something in the directory would be restored.
    var remark: PathRemark?
  }

  /// Enters a container that has an existing entry in its place. Returns false if it has none.
  mutating func passContainer(_ root: Int) -> Bool {
    guard let reason = selector.rules?.obstacle else { return false }
    obstacle = Obstacle(pathLength: 0, remark: PathRemark(path: ".", remark: reason))
    _ = passInto("", selector.root(), below: root)
    return true
  }

  /// Enters a directory that an existing entry prevents, as the last of the blocked ones tells, if
  /// that matters only for entries in it.
  mutating func pass(
    _ entry: TreeEntry, at path: ByteString, _ frame: RestoreSelector.Frame,
    role: RestoreSelector.Role
  ) -> TreeWalk.Step {
    guard entry.isDirectory, role != .whole, let above = directories.last?.number else {
      return .skip
    }
    if role == .empty, !isReplaced(entry.name, in: above) { return .skip }
    guard let remark = draft.plan.blocked.popLast() else { return .skip }
    obstacle = Obstacle(pathLength: path.count, remark: remark)
    return passInto(path, frame, below: above)
  }

  /// Passes an entry in such a directory. The first one that would be restored is the reason to
  /// report what prevents it.
  mutating func passBehindObstacle(
    _ entry: TreeEntry, at path: ByteString, _ frame: RestoreSelector.Frame,
    role: RestoreSelector.Role
  ) -> TreeWalk.Step {
    if entry.isDirectory, role != .whole, let above = directories.last?.number {
      return passInto(path, frame, below: above)
    }
    if let remark = obstacle?.remark.take() { draft.plan.blocked.append(remark) }
    return .skip
  }

  private mutating func passInto(
    _ path: ByteString, _ frame: RestoreSelector.Frame, below above: Int
  ) -> TreeWalk.Step {
    directories.append(OpenDirectory(number: above, pathLength: path.count, frame: frame))
    return .enter
  }

  /// Whether the user has replaced a directory that is restored empty by a link or by a mount, such
  /// as a cache on another disk.
  private mutating func isReplaced(_ name: ByteString, in above: Int) -> Bool {
    let depth = draft.plan.tree.entries[above].depth
    let kind = (try? target.kind(of: name, at: depth)) ?? nil
    return kind == .symlink || kind == .directory
  }
}

internal import ArchiveStore
internal import SystemIO

/// Directories of the snapshot whose place in the target another entry takes, and of which at most
/// a part is restored. The entry is a conflict only if the snapshot has something in that part.
extension RestorePlanner {
  /// An existing entry in the place of a directory that the walk is in.
  struct Obstacle {
    /// The length of the directory's path in the walk.
    let pathLength: Int
    /// The remark on the existing entry, until something in the directory would be restored.
    var remark: PathRemark?
    /// The name of the existing entry, and the index of its directory among the open ones.
    var name: ByteString?
    var directory = 0
    /// Whether it is the root of another volume, in the place of a whole directory.
    var isMount = false
  }

  /// Enters a container that has an existing entry in its place. Returns false if it has none.
  mutating func passContainer(_ root: Int, _ frame: RestoreSelector.Frame) -> Bool {
    guard let reason = selector.rules?.obstacle else { return false }
    obstacle = Obstacle(pathLength: 0, remark: PathRemark(path: ".", remark: reason))
    _ = passInto("", frame, below: root)
    return true
  }

  /// Enters a directory that an existing entry blocks (the last remark in `blocked`), if that
  /// matters only for entries in it. This includes mount points: a backup stores an empty directory
  /// instead.
  mutating func pass(
    _ entry: TreeEntry, at path: ByteString, _ frame: RestoreSelector.Frame,
    role: RestoreSelector.Role
  ) -> TreeWalk.Step {
    let isMount =
      role == .whole && draft.plan.blocked.last?.remark == PresentTarget.Conflict.mount.reason
    guard entry.isDirectory, role != .whole || isMount, let above = directories.last?.number else {
      return .skip
    }
    if role == .empty, !isReplaced(entry.name, in: above) { return .skip }
    guard let remark = draft.plan.blocked.popLast() else { return .skip }
    obstacle = Obstacle(
      pathLength: path.count, remark: remark, name: entry.name, directory: directories.count - 1,
      isMount: isMount)
    return passInto(path, frame, below: above)
  }

  /// Leaves such a directory. Records it if it is a mount and the snapshot has nothing in it.
  mutating func leaveObstacle(_ directory: OpenDirectory) {
    if let remark = obstacle?.remark, obstacle?.isMount == true, directory.lost.isEmpty {
      draft.plan.mounts.append(
        PathRemark(
          path: remark.path,
          remark: "\(remark.remark), and the snapshot has nothing to restore in it"))
    }
    obstacle = nil
  }

  /// Visits an entry in such a directory. If it is the first one that would be restored, the
  /// existing entry that prevents it is reported.
  mutating func passBehindObstacle(
    _ entry: TreeEntry, at path: ByteString, _ frame: RestoreSelector.Frame,
    role: RestoreSelector.Role
  ) -> TreeWalk.Step {
    if entry.isDirectory, role != .whole, let above = directories.last?.number {
      return passInto(path, frame, below: above)
    }
    if let remark = obstacle?.remark.take() {
      draft.plan.blocked.append(remark)
      keepObstacle()
    }
    return .skip
  }

  /// Keeps a directory and those above it, even if the policy removes them except for certain
  /// entries in them.
  mutating func keep(_ directory: OpenDirectory) {
    // A directory that an existing entry blocks has the number of the directory above it.
    guard let above = directories.indices.last, directories[above].number != directory.number else {
      return
    }
    if directory.frame.isRemoved {
      directories[above].unseen?.remove(draft.plan.tree.name(directory.number))
    }
    if directory.isUncertain || !directory.lost.isEmpty { directories[above].isUncertain = true }
  }

  /// Keeps the existing entry, as its remark says, even if the policy removes it.
  private mutating func keepObstacle() {
    guard let obstacle, let name = obstacle.name else { return }
    directories[obstacle.directory].unseen?.remove(name)
    directories[obstacle.directory].isUncertain = true
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
    let kind = try? target.kind(of: name, at: depth)
    return kind == .symlink || kind == .directory
  }
}

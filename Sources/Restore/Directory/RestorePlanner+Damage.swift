internal import ArchiveStore
internal import SystemIO

/// Directories of which the repository does not have all names.
extension RestorePlanner {
  /// Plans the deletions in a directory. If names of the snapshot are lost, an existing entry may
  /// be one of them: then nothing is deleted, and the directory is reported.
  mutating func planDeletions(_ unseen: Set<ByteString>, in directory: OpenDirectory) {
    let isAsked = plan.request.deletes && directory.frame.isInside
    if directory.lost.isEmpty {
      planDeletions(unseen, in: directory.number, isAsked: isAsked)
    } else if isAsked {
      let reason = "some of its names in the snapshot cannot be read, so nothing in it is removed"
      plan.spared.append(PathRemark(path: plan.shownPath(directory.number), remark: reason))
    }
  }

  /// Records that a directory, or a range of its names, cannot be read.
  mutating func noteDamage(
    at path: ByteString, error: StoreError, losing names: UnreadableNames = .any
  ) {
    leave(to: path.count)
    if let last = directories.indices.last, directories[last].pathLength == path.count {
      directories[last].lost.add(names)
    }
    damage.add(
      PathRemark(path: path.isEmpty ? "." : path, remark: error.reason), to: &plan.damaged)
  }
}

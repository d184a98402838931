internal import ArchiveStore
internal import SystemIO

/// What becomes of a directory of which the repository does not give all names.
extension RestorePlanner {
  /// Any of the names that are there may be one of those that are lost: then nothing is removed, which
  /// is said.
  mutating func planDeletions(_ unseen: Set<ByteString>, in directory: OpenDirectory) {
    let isAsked = plan.request.deletes && directory.frame.isInside
    if directory.lost.isEmpty {
      planDeletions(unseen, in: directory.number, isAsked: isAsked)
    } else if isAsked {
      let reason = "not all names that the snapshot has in it are known, so nothing in it goes"
      plan.spared.append(PathRemark(path: plan.shownPath(directory.number), remark: reason))
    }
  }

  /// Notes what of a directory cannot be read.
  mutating func noteDamage(
    _ path: ByteString, _ error: StoreError, _ names: LostNames = .any
  ) {
    leave(to: path.count)
    if let last = directories.indices.last, directories[last].pathLength == path.count {
      directories[last].lost.add(names)
    }
    damage.add(
      PathRemark(path: path.isEmpty ? "." : path, remark: error.reason), to: &plan.damaged)
  }
}

internal import DatabaseCapture
internal import DeviceTransaction
internal import SystemIO

/// Another operation in a directory that a restore into a plain directory changes.
///
/// Two restores into one directory could each put a part of a database in place. Restores into a
/// device exclude each other by its locks. Plain directories have no locks, so each run first locks
/// its own staging directory and then looks for locked ones of other runs: of two that begin at the
/// same moment at most one continues.
struct OtherRestore: Sendable {
  private let directory: ByteString
  private let holder: String

  init(_ staging: ActiveStaging) {
    (directory, holder) = (staging.directory, staging.holder)
  }

  /// Returns the error for a restore to a target.
  func error(for target: ByteString) -> OperationError {
    OperationError(
      .busy, code: .targetLocked, "restore to", subject: target,
      reason: "another restore is in progress in '\(directory)'" + holder,
      hint: "try again when it has ended")
  }
}

extension RestorePlan {
  /// Refuses a restore if another one was in progress in its target during planning: the plan does
  /// not match the state that the other one leaves.
  func requireAloneWhenPlanned() throws(OperationError) {
    if let other = target.activeRestore { throw other.error(for: request.target) }
  }

  /// The part of its directory that the restore changes.
  var work: StagedWork {
    guard let name = target.name else { return .merge }
    return .entry(DatabaseMember.owner(of: name)?.database ?? name)
  }

  /// Refuses a restore while another operation changes the same entries.
  ///
  /// - Parameters:
  ///   - root: the directory that the restore works in.
  ///   - own: the name of the restore's own staging directory in it.
  func requireAlone(
    in root: borrowing Directory, besides own: ByteString
  ) throws(OperationError) {
    let isMerged = target.name == nil
    var other = ActiveStaging.find(in: root, besides: own, for: isMerged ? [] : [.merge, work])
    if other == nil { other = activeAbove() }
    if other == nil, isMerged { other = activeBelow(root) }
    if let other { throw OtherRestore(other).error(for: request.target) }
  }

  /// A restore that merges a directory above the target.
  private func activeAbove() -> ActiveStaging? {
    var path = (try? Host.realPath(target.directory)) ?? target.directory
    while let name = path.lastComponent, !name.isEmpty {
      path = path.parent
      guard let directory = try? Directory.open(resolved: path) else { continue }
      if let other = ActiveStaging.find(in: directory, for: [.merge]) { return other }
    }
    return nil
  }

  /// A restore in a directory between the target and a database of the plan, or in one whose
  /// staging directory the plan deletes. In all others each entry is put in place by itself.
  private func activeBelow(_ root: borrowing Directory) -> ActiveStaging? {
    var directories: Set<Int> = []
    for database in databases {
      var number = database.directory
      while number != 0, directories.insert(number).inserted {
        number = Int(tree.entries[number].parent)
      }
    }
    for deletion in deletions where StagingDirectory.isAny(deletion.name) {
      directories.insert(deletion.directory)
    }
    guard !directories.isEmpty, let root = try? root.duplicate() else { return nil }
    var cursor = DirectoryCursor(root: root)
    for number in directories.sorted() where number != 0 {
      let path = tree.path(number, from: 0).components
      guard (try? cursor.move(to: path)) != nil else { continue }
      if let other = cursor.withDirectory({ ActiveStaging.find(in: $0) }) { return other }
    }
    return nil
  }
}

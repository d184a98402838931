package import ArchiveStore
package import DeviceTransaction
internal import SandboxModel
package import SystemIO

/// The plan of a restore, entry by entry: the snapshot, the path in it, and the target.
///
/// A plan is made from the snapshot and the present state of the target; planning changes nothing.
package struct RestorePlan: Sendable {
  /// The snapshot to restore from.
  package let snapshot: StoredSnapshot
  /// The request.
  package let request: RestoreRequest
  /// The entries to create.
  package internal(set) var creates = RestoreTotals()
  /// The entries to replace; of existing directories, their metadata.
  package internal(set) var replaces = RestoreTotals()
  /// The existing entries that are kept.
  package internal(set) var leaves = RestoreTotals()
  /// The entries to delete because the snapshot does not have them.
  package internal(set) var deletes = RestoreTotals()
  /// Entries that cannot be restored because of the existing entry, with the reason.
  package internal(set) var blocked: [PathRemark] = []
  /// Entries that the snapshot does not have and that are kept, with the reason.
  package internal(set) var spared: [PathRemark] = []
  /// Directories of the snapshot's tree that cannot be read completely; the lost entries are
  /// unknown.
  package internal(set) var damaged: [PathRemark] = []

  /// Links that now point to a container's new location, with their previous targets.
  package internal(set) var relinked: [PathRemark] = []
  /// Absolute links that point outside the restored containers; they are restored unchanged.
  package internal(set) var foreignLinks: [PathRemark] = []

  package var place: RestoreTarget
  package var tree = PlannedTree()
  var deletions: [PlannedDeletion] = []
  /// Databases in merged directories of which a file changes.
  var databases: [PlannedDatabase] = []

  package init(_ snapshot: StoredSnapshot, _ request: RestoreRequest, at place: RestoreTarget) {
    self.snapshot = snapshot
    self.request = request
    self.place = place
  }

  /// The parts of the restored path that the snapshot's policy excluded.
  package var excludedData: [Exclusion] {
    snapshot.snapshot.excluded.filter {
      $0.path.isWithin(request.path) || request.path.isWithin($0.path)
    }
  }

  /// The paths below the target to replace, including directories of which only the metadata
  /// changes.
  package var replacedPaths: some Collection<ByteString> {
    tree.entries.indices.lazy.filter { tree.entries[$0].action == .replace }.map { shownPath($0) }
  }

  /// The paths below the target to delete.
  package var deletedPaths: some Collection<ByteString> {
    deletions.lazy.map { deletion in
      let above = tree.path(deletion.directory, from: place.shownDepth)
      return above.appending(deletion.name)
    }
  }

  /// Whether nothing is written or deleted.
  package var isIdle: Bool {
    creates.entries + replaces.entries + deletes.entries == 0 && databases.isEmpty
  }

  /// Whether an entry is counted; the target directory itself is not.
  func isCounted(_ entry: PlannedEntry) -> Bool { entry.depth > place.shownDepth }

  /// Returns the path of an entry below the target; a dot for the target itself.
  package func shownPath(_ number: Int) -> ByteString {
    let path = tree.path(number, from: place.shownDepth)
    return path.isEmpty ? "." : path
  }
}

/// An entry of the target that the snapshot does not have.
struct PlannedDeletion: Sendable {
  /// The number of its directory.
  let directory: Int
  let name: ByteString
  /// The totals of the entry and everything in it.
  let totals: RestoreTotals
  /// The number of the entry that replaces it; nil if it is deleted by itself.
  let replacement: Int?
  /// Whether it was withdrawn during planning; a finished plan has no such deletion.
  var isWithdrawn = false
}

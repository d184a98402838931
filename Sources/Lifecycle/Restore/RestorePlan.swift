public import ArchiveStore
internal import SandboxModel
public import SystemIO

/// What a restore will do, entry by entry: from which snapshot, which path of it, to where.
///
/// A plan is made from the snapshot and a look at the target; it changes nothing.
public struct RestorePlan: Sendable {
  /// The snapshot that is restored from.
  public let snapshot: StoredSnapshot
  /// What was asked for.
  public let request: RestoreRequest
  /// What is to be made where nothing is.
  public internal(set) var creates = RestoreTotals()
  /// What gives way: of a directory that is there, its metadata.
  public internal(set) var replaces = RestoreTotals()
  /// What is there and stays.
  public internal(set) var leaves = RestoreTotals()
  /// What is to be removed, because the snapshot lacks it.
  public internal(set) var deletes = RestoreTotals()
  /// Entries that cannot be restored, because of what stands in their place.
  public internal(set) var blocked: [PathRemark] = []
  /// What the snapshot lacks, and what stays all the same.
  public internal(set) var spared: [PathRemark] = []
  /// What of the tree cannot be read, by the folders: which entries that costs is not known.
  public internal(set) var damaged: [PathRemark] = []

  /// Links that lead to a container's new place, with what they led to.
  public internal(set) var relinked: [PathRemark] = []
  /// Absolute links that lead out of what is restored, which stay as they were stored.
  public internal(set) var foreignLinks: [PathRemark] = []

  var place: RestoreTarget
  var tree = PlannedTree()
  var deletions: [PlannedDeletion] = []
  /// Databases of which something changes in a directory that is there.
  var databases: [PlannedDatabase] = []

  init(_ snapshot: StoredSnapshot, _ request: RestoreRequest, _ place: RestoreTarget) {
    self.snapshot = snapshot
    self.request = request
    self.place = place
  }

  /// The parts of the restored path that the snapshot does not hold, because its policy excluded them.
  public var notHeld: [Exclusion] {
    snapshot.snapshot.excluded.filter {
      $0.path.isWithin(request.path) || request.path.isWithin($0.path)
    }
  }

  /// The paths below the target that give way, directories that only get other metadata among them.
  public var replacedPaths: some Collection<ByteString> {
    tree.entries.indices.lazy.filter { tree.entries[$0].action == .replace }.map { shownPath($0) }
  }

  /// The paths below the target that are to be removed.
  public var deletedPaths: some Collection<ByteString> {
    deletions.lazy.map { deletion in
      let above = tree.path(deletion.directory, from: place.shownDepth)
      return above.appending(deletion.name)
    }
  }

  /// Whether nothing is to be written or removed.
  public var isIdle: Bool {
    creates.entries + replaces.entries + deletes.entries == 0 && databases.isEmpty
  }

  /// Whether an entry is counted: the target directory itself is not.
  func isCounted(_ entry: PlannedEntry) -> Bool { entry.depth > place.shownDepth }

  /// The path of an entry below the target; a dot for the target itself.
  func shownPath(_ number: Int) -> ByteString {
    let path = tree.path(number, from: place.shownDepth)
    return path.isEmpty ? "." : path
  }
}

/// Something in the target that the snapshot lacks.
struct PlannedDeletion: Sendable {
  /// The entry of the directory that it is in.
  let directory: Int
  let name: ByteString
  /// What it is, with all that is in it.
  let totals: RestoreTotals
  /// The entry that takes its place, and with which it goes; nothing where it goes by itself.
  let replacement: Int?
  /// Whether it was taken back while the plan was made: it is not in a finished plan.
  var isWithdrawn = false
}

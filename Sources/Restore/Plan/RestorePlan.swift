package import ArchiveStore
internal import DatabaseCapture
package import DeviceTransaction
internal import SandboxModel
package import SystemIO

/// The plan of a restore, entry by entry: the snapshot, the path in it, and the target.
///
/// A plan is made from the snapshot and the present state of the target; planning changes nothing.
package struct RestorePlan: Sendable {
  /// A child of a directory, by its name.
  struct Child: Hashable {
    let directory: Int
    let name: ByteString
  }

  /// An entry of the target that the snapshot does not have.
  struct Deletion: Sendable {
    /// The number of its directory.
    let directory: Int
    let name: ByteString
    /// The totals of the entry and everything in it.
    let totals: RestoreTotals
    /// The number of the entry that replaces it; nil if it is deleted by itself.
    let replacement: Int?
    /// Whether it was withdrawn during planning; a finished plan has no such deletion.
    var isWithdrawn = false

    /// The child to delete.
    var child: Child { Child(directory: directory, name: name) }
  }

  /// A database that a restore changes in an existing directory. The database, its log and its
  /// journal are a single unit: a log of another state would damage the database when it is opened.
  struct Database: Sendable {
    /// The number of its directory, and its name there.
    let directory: Int
    let name: ByteString
    /// Whether the database or a file beside it exists.
    var isPresent: Bool
    /// The entries to write, in the order in which they are put in place; the database is last.
    var members: [Int] = []
    /// The entry of the database file, if it is written.
    var entry: Int?
    /// Files beside it that belong to another state; they are moved away before an entry is put in
    /// place.
    var orphanedSidecars: [ByteString] = []
    /// The existing files that no entry replaces, as they were at the plan: those of another state,
    /// and those that match the snapshot.
    var existing: [ByteString: PlannedTree.Existing] = [:]
    /// The number in the names under which its files are kept together; 0 for none.
    var asideNumber = 0
    /// Whether it was withdrawn during planning; a finished plan has no such database.
    var isWithdrawn = false

    /// The stray files beside it.
    var children: [Child] {
      orphanedSidecars.map { Child(directory: directory, name: $0) }
    }
  }

  /// The limit on remarks about single paths: a repository may have more damage, under longer
  /// names, than memory holds. Remarks beyond the limit are counted and reported as one.
  struct RemarkLimit {
    private var room: Int
    private(set) var others = 0

    /// The maximum size of all paths and remarks, in bytes.
    static let room = 16 << 20

    init(room: Int = Self.room) { self.room = room }

    /// Adds a remark if there is room for it.
    mutating func add(_ remark: PathRemark, to remarks: inout [PathRemark]) {
      let size = remark.path.count + remark.remark.utf8.count
      guard others == 0, size <= room else {
        others += 1
        return
      }
      room -= size
      remarks.append(remark)
    }

    /// Appends a remark with the number of omitted ones.
    func close(_ remarks: inout [PathRemark]) {
      if others == 0 { return }
      remarks.append(
        PathRemark(path: ".", remark: "\(others) more are not listed: there are too many"))
    }
  }

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
  /// The files of the snapshot that the policy does not restore.
  package internal(set) var omitted = RestoreTotals()
  /// The entries to delete because the snapshot does not have them.
  package internal(set) var deletes = RestoreTotals()
  /// Entries that cannot be restored because of the existing entry, with the reason.
  package internal(set) var blocked: [PathRemark] = []
  /// Directories at which a volume is mounted and in which the snapshot has nothing.
  package internal(set) var mounts: [PathRemark] = []
  /// Entries that the snapshot does not have and that are kept, with the reason.
  package internal(set) var spared: [PathRemark] = []
  /// Directories of the snapshot's tree that cannot be read completely; the lost entries are
  /// unknown.
  package internal(set) var damaged: [PathRemark] = []
  /// Whether the repository is damaged: not all of these need an older key.
  package internal(set) var isDamaged = false

  /// Links that now point to a container's new location, with their previous targets.
  package internal(set) var relinked: [PathRemark] = []
  /// Absolute links that point outside the restored containers; they are restored unchanged.
  package internal(set) var foreignLinks: [PathRemark] = []

  package var target: RestoreTarget
  package var tree = PlannedTree()
  var deletions: [Deletion] = []
  /// Databases in merged directories that have a changed file.
  var databases: [Database] = []

  package init(_ snapshot: StoredSnapshot, _ request: RestoreRequest, at target: RestoreTarget) {
    self.snapshot = snapshot
    self.request = request
    self.target = target
  }

  /// The parts of the restored path that the snapshot's policy excluded.
  package var excludedData: [Exclusion] {
    snapshot.snapshot.excluded.filter { $0.concerns(request.path) }
  }

  /// The data of the restored path that the snapshot lacks although the policy keeps it, by logical
  /// paths: its backup could not read it, or damage lost it before a repair.
  package var incompleteData: [PathRemark] { snapshot.snapshot.incompleteData(at: request.path) }

  /// The paths below the target to replace, including directories with only changed metadata.
  package var replacedPaths: some Collection<ByteString> {
    tree.entries.indices.lazy.filter { tree.entries[$0].action == .replace }.map { shownPath($0) }
  }

  /// The paths below the target to delete.
  package var deletedPaths: some Collection<ByteString> {
    deletions.lazy.map { shownPath($0.child) }
  }

  /// Whether an existing entry is replaced or deleted, and has to be kept.
  package var displaces: Bool {
    replaces.entries + deletes.entries > 0 || databases.contains { !$0.orphanedSidecars.isEmpty }
  }

  /// Whether nothing is written or deleted.
  package var isIdle: Bool {
    creates.entries + replaces.entries + deletes.entries == 0 && databases.isEmpty
  }

  /// Whether an entry is counted; the target directory itself is not.
  func isCounted(_ entry: PlannedTree.Entry) -> Bool { entry.depth > target.shownDepth }

  /// Returns the path of an entry below the target; a dot for the target itself.
  package func shownPath(_ number: Int) -> ByteString {
    let path = tree.path(number, from: target.shownDepth)
    return path.isEmpty ? "." : path
  }

  /// Returns the path of a child of a directory below the target.
  func shownPath(_ child: Child) -> ByteString {
    tree.path(child.directory, from: target.shownDepth).appending(child.name)
  }

  // MARK: - Databases

  /// The entries that are put in place with their database.
  var databaseMembers: Set<Int> { Set(databases.flatMap(\.members)) }

  /// The deletions that are carried out by themselves; a file beside a database is deleted with
  /// it.
  var removals: [Deletion] {
    let orphanedSidecars = Set(databases.flatMap(\.children))
    return deletions.filter { deletion in
      deletion.replacement == nil && !orphanedSidecars.contains(deletion.child)
    }
  }

  /// Files that belong to another state of the restored databases and that the plan does not
  /// delete; they are moved away with the replaced files.
  package var displaced: [PathRemark] { displaced(besides: []) }

  /// Returns these files except those of databases that are kept, by their numbers.
  func displaced(besides staying: Set<Int>) -> [PathRemark] {
    if databases.isEmpty { return [] }
    let deleted = Set(deletions.map(\.child))
    return databases.enumerated().filter { !staying.contains($0.offset) }.flatMap { _, database in
      database.children.filter { !deleted.contains($0) }.map { child in
        PathRemark(
          path: shownPath(child), remark: "it belongs to another state of '\(database.name)'")
      }
    }
  }

  /// Returns the deletions planned with databases: the totals of those carried out, and the reasons
  /// for the others.
  ///
  /// - Parameter staying: the numbers of the databases that are kept unchanged.
  func deletionsOfOrphans(
    besides staying: Set<Int>
  ) -> (gone: RestoreTotals, spared: [PathRemark]) {
    let owners = Dictionary(
      databases.enumerated().flatMap { number, database in database.children.map { ($0, number) } },
      uniquingKeysWith: { first, _ in first })
    var (gone, spared) = (RestoreTotals(), [PathRemark]())
    for deletion in deletions {
      guard let owner = owners[deletion.child] else { continue }
      if staying.contains(owner) {
        spared.append(
          PathRemark(
            path: shownPath(deletion.child),
            remark: "it belongs to '\(databases[owner].name)', which is kept"))
      } else {
        gone.add(deletion.totals)
      }
    }
    return (gone, spared)
  }

  // MARK: - The target

  /// Refuses a directory other than the one that the plan was made for.
  package func requirePlanned(_ root: borrowing Directory) throws {
    guard let planned = target.identity, try root.status().identity != planned else { return }
    throw OperationError(
      .failed, code: .changedSincePlan,
      "restore to", subject: root.path,
      reason: "another directory has replaced it since the restore was "
        + "planned", hint: "run the restore again")
  }

  // MARK: - Space

  /// The hint for a volume without enough room.
  package static let roomHint =
    "free space on the volume, or restore a part with '--app', '--class' or 'SNAP:PATH'"

  /// Returns the minimum space that the restore takes: all new and replacing entries are staged
  /// before the first one is put in place. A directory counts no bytes, because many file systems
  /// keep it in its inode; a file with piece lists counts as if it had no holes.
  package func need(on space: VolumeSpace) -> (bytes: UInt64, entries: UInt64) {
    let isMade = tree.directoriesWithWork()
    var (bytes, entries) = (UInt64(0), StagingDirectory.entries)
    for number in tree.entries.indices.dropFirst() {
      let entry = tree.entries[number]
      if entry.kind == .directory {
        if isMade[number] { entries += 1 }
      } else if entry.action.isWritten, tree.leader(number) == nil {
        entries += 1
        bytes.addClamping(space.allocated(by: tree.stored(number)))
      }
    }
    return (bytes, entries)
  }

  /// Returns the size of the holes in files with piece lists; nil if a list cannot be read, or if
  /// there are too many pieces to read in advance.
  func holesInLists(on space: VolumeSpace, from reader: RepositoryReader) -> UInt64? {
    var (holes, left) = (UInt64(0), Self.maximumPieces)
    for number in tree.entries.indices {
      let entry = tree.entries[number]
      guard entry.level > 0, entry.action.isWritten, tree.leader(number) == nil else { continue }
      var stored: UInt64 = 0
      do {
        try reader.forEachPiece(tree.pieces(number), level: entry.level) { _, piece in
          left -= 1
          if left < 0 { throw TooManyPieces() }
          if piece.isBlob { stored.addClamping(piece.length) }
        }
      } catch { return nil }
      let (whole, rest) = (space.allocated(by: entry.size), space.allocated(by: stored))
      holes.addClamping(whole > rest ? whole - rest : 0)
    }
    return holes
  }

  /// Several TiB of ordinary files, or 16 GiB of databases; about a second of work.
  private static let maximumPieces = 1 << 20

  private struct TooManyPieces: Error {}
}

extension ByteString {
  func followed(by suffix: [UInt8]) -> ByteString { ByteString(bytes + suffix) }

  /// Whether it is the name of a database's index of its log, which only that database uses.
  var isSharedMemory: Bool { bytes.suffix(4).elementsEqual(DatabaseMember.sharedMemory.suffix) }

  /// The database that a log or a journal of this name belongs to, or nil if it is neither.
  var databaseOfCompanion: ByteString? {
    guard let owner = DatabaseMember.owner(of: self), owner.member != .sharedMemory else {
      return nil
    }
    return owner.database
  }
}

package import ArchiveStore
package import DeviceTransaction
internal import Synchronization
package import SystemIO

/// The state that the threads of a restore share: the entries, the directories, and the findings.
package final class RestoreRun: Sendable {
  /// A position in the directories of a planned tree, in the staging directory or in the target.
  /// The directories down to the position are open; a move to another one goes through the nearest
  /// common ancestor.
  struct Cursor: ~Copyable {
    private let tree: PlannedTree
    private var directories: DirectoryCursor

    /// Creates a cursor at the directory that is the tree's first entry.
    init(_ tree: PlannedTree, root: consuming Directory, limit: Int = 64) {
      self.tree = tree
      directories = DirectoryCursor(root: root, limit: limit)
    }

    /// Moves to the directory with a number. After an error the cursor may be at another directory.
    mutating func move(to directory: Int) throws(SystemError) {
      if directory == directories.number { return }
      var (down, above) = ([Int32](), directory)
      while above > 0 {
        down.append(Int32(above))
        above = Int(tree.entries[above].parent)
      }
      down.reverse()
      let tree = tree
      do throws(DirectoryCursor.NumberedFailure) {
        try directories.move(toNumbered: down) { (tree.name($0), nil) }
      } catch { throw error.error }
    }

    /// Calls `body` with the directory that contains an entry.
    mutating func withDirectory<Result: ~Copyable>(
      of number: Int, _ body: (borrowing Directory) throws(SystemError) -> Result
    ) throws(SystemError) -> Result {
      try move(to: Int(tree.entries[number].parent))
      return try directories.withDirectory(body)
    }

    /// Calls `body` with the directory of a number.
    mutating func within<Result: ~Copyable>(
      _ directory: Int, _ body: (borrowing Directory) throws(SystemError) -> Result
    ) throws(SystemError) -> Result {
      try move(to: directory)
      return try directories.withDirectory(body)
    }
  }

  let tree: PlannedTree
  package let findings: RestoreFindings
  /// The values of attributes that came with the contents of files.
  let values: AttributeValues
  /// The identities of the created entries that get flags once they are in place.
  private let flagged = Mutex<[Int: FileIdentity]>([:])
  /// The number of the target's own entry, if the target is new.
  private let target: Int?
  /// The counters of the restore's progress.
  let counters: ProgressCounters
  /// The number of directories that each thread may keep open.
  let openDirectories: Int
  /// The directory that the restore works in.
  private let root: Directory
  /// The staging directory.
  private let staged: Directory
  /// The status of a new file in the staging directory.
  let fresh: FileStatus
  /// Whether large files are synced individually, because a volume sync reports no write errors.
  let syncsEachFile: Bool

  package init(
    _ plan: RestorePlan, in root: borrowing Directory, staging: borrowing StagingDirectory,
    threads: Int, counters: ProgressCounters, kernel: KernelVersion? = Host.kernelVersion
  ) throws(SystemError) {
    syncsEachFile = !(kernel?.reportsErrorsOfVolumeSync ?? true)
    tree = plan.tree
    values = AttributeValues(besides: plan.tree)
    target = plan.target.name.map { _ in 1 }
    self.counters = counters
    findings = RestoreFindings(
      counters,
      verifiesMetadata: !MetadataProbe.isExact(for: plan.tree, in: staging.tree))
    self.root = try root.duplicate()
    // All threads together stay below 1,024 open files, a common limit for a process.
    openDirectories = max(4, min(64, 512 / max(1, threads)))
    staged = try staging.tree.duplicate()
    fresh = staging.fresh
  }

  /// Returns a cursor in the staging directory.
  func cursor() throws(SystemError) -> Cursor {
    Cursor(tree, root: try staged.duplicate(), limit: openDirectories)
  }

  /// Syncs the volume. An error is reported once to each open directory, so this uses another one
  /// than the final sync.
  func syncEarly() throws(SystemError) { try root.syncVolume() }

  /// Returns the roots of the steps (`PlacementSteps.Root`); the last one only if there is a
  /// trash.
  func roots(keptIn kept: ByteString?) throws(SystemError) -> [JournalRecord.Root] {
    var roots = [
      JournalRecord.Root(path: root.path, inode: try root.status().identity.inode),
      JournalRecord.Root(path: staged.path, inode: try staged.status().identity.inode),
    ]
    if let kept { roots.append(JournalRecord.Root(path: kept, inode: nil)) }
    return roots
  }

  /// Returns a cursor in the directory that the restore works in.
  func targetCursor() throws(SystemError) -> Cursor {
    Cursor(tree, root: try root.duplicate(), limit: openDirectories)
  }

  /// Whether a file consists of one blob and its attributes are inline: the thread that has the
  /// blob creates such a file at once; all others are created step by step.
  func isSimple(_ number: Int) -> Bool {
    let entry = tree.entries[number]
    guard entry.level == 0, tree.pieces(number).count(where: \.isBlob) == 1 else { return false }
    return tree.detail(number).attributes.allSatisfy(\.isInline)
  }

  /// Creates a file in the staging directory. The flag against copy-on-write has an effect only on
  /// an empty file; the others are set last.
  func createFile(
    _ number: Int, in directory: borrowing Directory, permissions: UInt16
  ) throws(SystemError) -> Descriptor {
    let file = try directory.create(tree.name(number), permissions: permissions)
    let flags = tree.entries[number].detail == nil ? 0 : tree.detail(number).flags
    if flags & FileFlags.noCopyOnWrite != 0 { try? file.setFlags(FileFlags.noCopyOnWrite) }
    if flags != 0 { didCreate(number, try? file.status()) }
    return file
  }

  /// Records a created entry that gets flags once it is in place.
  func didCreate(_ number: Int, _ status: FileStatus?) {
    flagged.withLock { $0[number] = status?.identity }
  }

  /// Whether an entry with flags is the one that was created, and has at most `links` names.
  ///
  /// The user of a device can exchange entries that are in place, for example for a name of a file
  /// of root, whose flags are not to be changed.
  func isCreated(_ number: Int, _ status: FileStatus, links: Int) -> Bool {
    status.identity == flagged.withLock { $0[number] }
      && (status.kind == .directory || status.links <= links)
  }

  /// Announces the files to create to the counters; hard links count once.
  package func expectFiles() {
    for entry in tree.entries where entry.kind == .file && entry.action.isWritten {
      guard entry.detail.flatMap({ tree.details[Int($0)].leader }) == nil else { continue }
      counters.expect(files: 1, bytes: entry.size)
    }
  }

  /// Records an error of one entry.
  ///
  /// - Throws: `OperationError` if the error ends the restore, or if the entry is the target
  ///   itself.
  func record(_ number: Int, _ error: SystemError) throws(OperationError) {
    if endsEverything(error) || number == target { throw OperationError(error) }
    findings.fail(number, error.reason)
  }

  /// Whether an error ends the restore: the volume is full or read-only. A subvolume of btrfs may
  /// be read-only while the directory that the restore works in is not: then only its entries fail.
  func endsEverything(_ error: SystemError) -> Bool {
    error.endsEverything && !(error.code == .readOnly && root.canBeChanged)
  }

  /// Records that nothing below an entry is created, for the reason that is reported for it.
  func skip(below number: Int) {
    for below in (number + 1)..<tree.end(of: number) { findings.skip(below) }
  }
}

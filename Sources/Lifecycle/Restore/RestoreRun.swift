internal import ArchiveStore
internal import SystemIO

/// What the threads of a restore share: what is to be made, where, and what they found out.
final class RestoreRun: Sendable {
  let tree: PlannedTree
  let findings: RestoreFindings
  /// The entry that the target itself is, where it is made anew.
  private let target: Int?
  /// Where it is told how far the restore is.
  let counters: ProgressCounters
  /// How many directories each thread may keep open.
  let openDirectories: Int
  /// The directory that the restore works in.
  private let root: Directory
  /// Where everything is made.
  private let staged: Directory
  /// What a new file there is like.
  let fresh: FileStatus
  /// Whether large files are synced one by one, because a sync of the volume reports no write error.
  let syncsEachFile: Bool

  init(
    _ plan: RestorePlan, in root: borrowing Directory, _ staging: borrowing StagingDirectory,
    threads: Int, _ counters: ProgressCounters, kernel: KernelVersion? = Host.kernelVersion
  ) throws(SystemError) {
    syncsEachFile = !(kernel?.reportsErrorsOfVolumeSync ?? true)
    tree = plan.tree
    target = plan.place.name.map { _ in 1 }
    self.counters = counters
    findings = RestoreFindings(counters)
    self.root = try root.duplicate()
    // All threads together stay below the 1,024 files that a program may usually have open.
    openDirectories = max(4, min(64, 512 / max(1, threads)))
    staged = try staging.tree.duplicate()
    fresh = staging.fresh
  }

  /// A cursor in the staging directory.
  func cursor() throws(SystemError) -> TreeCursor {
    TreeCursor(tree, root: try staged.duplicate(), limit: openDirectories)
  }

  /// Has the volume written to the disk. What it fails for is told once to each open folder: so this is
  /// not the one that the restore syncs the volume by at its end.
  func syncEarly() throws(SystemError) { try root.syncVolume() }

  /// The roots of the steps by which entries get their place (`RestorePlan.StepRoot`), the last one
  /// where there is a trash.
  func roots(keptIn kept: ByteString?) throws(SystemError) -> [JournalRecord.Root] {
    var roots = [
      JournalRecord.Root(path: root.path, inode: try root.status().identity.inode),
      JournalRecord.Root(path: staged.path, inode: try staged.status().identity.inode),
    ]
    if let kept { roots.append(JournalRecord.Root(path: kept, inode: nil)) }
    return roots
  }

  /// A cursor in the directory that the restore works in.
  func targetCursor() throws(SystemError) -> TreeCursor {
    TreeCursor(tree, root: try root.duplicate(), limit: openDirectories)
  }

  /// Whether a file's content is one blob, and what else it has stands in its entry: such a file is
  /// made in one go by whoever has the blob, the others step by step.
  func isSimple(_ number: Int) -> Bool {
    let entry = tree.entries[number]
    guard entry.level == 0, tree.pieces(number).count(where: \.isBlob) == 1 else { return false }
    return tree.detail(number).attributes.allSatisfy(\.isInline)
  }

  /// Counts the files that are to be made, by their first names.
  func expectFiles() {
    for entry in tree.entries where entry.kind == .file && entry.action.isWritten {
      guard entry.detail.flatMap({ tree.details[Int($0)].leader }) == nil else { continue }
      counters.expect(files: 1, bytes: entry.size)
    }
  }

  /// Takes an error of one entry: it is noted, unless nothing more can succeed on the volume, or the
  /// entry is all that there is to make.
  func note(_ number: Int, _ error: SystemError) throws(LifecycleError) {
    if error.endsEverything || number == target { throw LifecycleError(error) }
    findings.fail(number, error.reason)
  }
}

extension Piece {
  /// Whether it is a blob, and no hole.
  var isBlob: Bool { if case .blob = self { true } else { false } }
}

extension Attribute {
  /// Whether the value stands in the entry.
  var isInline: Bool { inlineValue != nil }

  /// The value, where it stands in the entry.
  var inlineValue: [UInt8]? { if case .inline(let value) = value { value } else { nil } }
}

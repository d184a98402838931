package import ArchiveStore
internal import DatabaseCapture
internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
package import SystemIO

/// The result of a backup: the stored entries and the problems.
package struct BackupReport: Sendable {
  /// The contents of the snapshot, by data class.
  package private(set) var classes: [Totals.Class] = []
  /// The number of files in the snapshot.
  package private(set) var files = 0
  /// The number of entries of all kinds in the snapshot.
  package var entries = 0
  /// The bytes of the files in the snapshot; a hard-linked file counts once.
  package private(set) var bytes: UInt64 = 0
  /// Entries included by the policy that could not be read: missing or incomplete in the snapshot.
  package internal(set) var unreadable: [PathRemark] = []
  /// Files that were not opened because the device is locked, in the order of their paths.
  package internal(set) var waiting: [LockedFile] = []
  /// Entries in the snapshot that have a warning.
  package internal(set) var warnings: [PathRemark] = []
  /// The capture method of each database that was read.
  package internal(set) var databases: [DatabaseRecord] = []
  /// The databases with a journal of a transaction over several databases that may or may not have
  /// been committed: their copies may be inconsistent.
  package private(set) var databasesUndecided: Set<ByteString> = []
  /// The LevelDB and RocksDB stores whose files were replaced throughout the run, and the databases
  /// of Realm and LMDB that changed: their copies may be unusable.
  package private(set) var restlessDatabases: Set<ByteString> = []
  /// The path of the source in the warning that it has lost everything, or nil if it has not.
  package internal(set) var emptied: ByteString?
  /// Remarks that concern no single path.
  package internal(set) var remarks: [String] = []
  /// Damaged index objects, whose otherwise unlisted blobs were stored again; damaged condemned
  /// objects, which were removed; and the loss of all earlier snapshots.
  package internal(set) var damagedObjects: [StoreError] = []
  /// The number of files that were opened.
  package internal(set) var opened = 0
  /// Whether no snapshot was written because it would equal the source's last one.
  package internal(set) var isUnchanged = false
  /// The snapshot, or nil if none was written.
  package internal(set) var snapshot: StoredSnapshot?
  /// The identities of the devices that had snapshots when the run began, as far as they could be
  /// read.
  package internal(set) var devices: Set<String> = []
  /// Statistics of the data written to the repository.
  package internal(set) var statistics: WritingSession.Statistics?
  /// The duration in seconds.
  package internal(set) var seconds = 0.0

  init() {}

  /// The number of bytes added to the repository.
  package var storedBytes: UInt64 { statistics?.storedBytes ?? 0 }

  /// Whether the snapshot has everything that the policy includes, with no database inconsistent.
  package var isComplete: Bool {
    unreadable.isEmpty && waiting.isEmpty && databasesUnlocked.isEmpty && restlessDatabases.isEmpty
  }

  /// Databases that were in use throughout the run, or whose log or journal could not be opened or
  /// is undecided: their copies may be inconsistent.
  package var databasesUnlocked: [DatabaseRecord] {
    databases.filter { $0.how == CaptureResult.Method.unlocked.rawValue }
  }

  /// Those of them that were in use.
  package var databasesInUse: [DatabaseRecord] {
    let lacking = Set(unreadable.compactMap { DatabaseMember.owner(of: $0.path)?.database })
    return databasesUnlocked.filter {
      !lacking.contains($0.path) && !databasesUndecided.contains($0.path)
    }
  }

  /// The paths of the warnings that make a backup end with an exit status other than 0.
  package var seriousWarnings: Set<ByteString> {
    databasesUndecided.union(restlessDatabases).union(emptied.map { [$0] } ?? [])
  }

  /// The first reason why the snapshot is not complete, or nil if it is.
  var firstGap: PathRemark? {
    if let missing = unreadable.first ?? waiting.first?.note { return missing }
    guard let path = databasesUnlocked.first?.path ?? restlessDatabases.min() else { return nil }
    return warnings.first { $0.path == path }
      ?? PathRemark(path: path, remark: "the database was read without a lock")
  }

  /// Adds the findings of a run.
  mutating func add(_ findings: BackupRun.Findings) {
    unreadable += findings.unreadable
    waiting = findings.waiting.sorted { $0.path < $1.path }
    warnings += findings.warnings
    databases += findings.databases.sorted { $0.path < $1.path }
    databasesUndecided.formUnion(findings.undecided)
    restlessDatabases.formUnion(findings.restlessDatabases)
    remarks += findings.remarks
    unreadable.sort { $0.path < $1.path }
    warnings.sort { $0.path < $1.path }
  }

  /// Adds warnings for containers that were removed before the last scan of the run.
  mutating func addRemoved(_ containers: [Container]) {
    warnings += containers.map {
      PathRemark(path: $0.logicalPrefix, remark: "it was removed during the backup")
    }
    warnings.sort { $0.path < $1.path }
  }

  /// Adds a warning that the source has lost everything that its last snapshot contains.
  mutating func addEmptied(_ remark: PathRemark) {
    emptied = remark.path
    warnings.append(remark)
    warnings.sort { $0.path < $1.path }
  }

  /// Counts the contents of the snapshot: the included entries of the scans that are not missing.
  mutating func count(_ trees: [SelectedTree], _ findings: BackupRun.Findings) {
    var totals: [DataClass: Totals.Class] = [:]
    var linked = LinkedBytes(trees)
    let missing = Dictionary(grouping: findings.missing, by: \.container)
    for tree in trees where !tree.isEmpty {
      count(tree, without: missing, findings, in: &totals, linked: &linked)
    }
    for (owner, size) in findings.extras {
      let entry = trees[Int(owner.container)].scan.entries[Int(owner.index)]
      entries += 1
      files += 1
      bytes.addClamping(size)
      totals[entry.verdicts.keep.dataClass]?.files += 1
      totals[entry.verdicts.keep.dataClass]?.bytes.addClamping(size)
    }
    bytes.addClamping(linked.add(to: &totals))
    classes = totals.values.sorted { $0.name < $1.name }
  }

  private mutating func count(
    _ tree: SelectedTree, without missing: SelectedTree.MissingEntries.ByContainer,
    _ findings: BackupRun.Findings, in totals: inout [DataClass: Totals.Class],
    linked: inout LinkedBytes
  ) {
    var isMissing = SelectedTree.MissingEntries(tree, missing)
    var (last, total) = (DataClass.unknown, Totals.Class(name: "", files: 0, bytes: 0))
    for (index, entry) in tree.scan.entries.enumerated()
    where entry.selection != .excluded && !isMissing.check(index) {
      let dataClass = entry.verdicts.keep.dataClass
      if dataClass != last || total.name.isEmpty {
        if !total.name.isEmpty { totals[last] = total }
        total = totals[dataClass] ?? Totals.Class(name: dataClass.rawValue, files: 0, bytes: 0)
        last = dataClass
      }
      entries += 1
      guard entry.status.kind == .file else { continue }
      let read = findings.sizes.isEmpty ? nil : findings.sizes[tree.id(index)]
      let size = read ?? entry.status.size
      files += 1
      total.files += 1
      if entry.status.links > 1 {
        linked.record(
          entry.status.identity, size: size, of: tree.id(index), dataClass)
      } else {
        bytes.addClamping(size)
        total.bytes.addClamping(size)
      }
    }
    if !total.name.isEmpty { totals[last] = total }
  }
}

extension BackupReport {
  /// The bytes of hard-linked files in a snapshot. Each file counts once, in the class of its first
  /// name in the order of the tree, as for a reader that walks the snapshot.
  struct LinkedBytes {
    private let trees: [SelectedTree]
    private var first: [File: Name] = [:]

    /// A file. Names that were read with different sizes are restored as separate files.
    private struct File: Hashable {
      let identity: FileIdentity
      let size: UInt64
    }

    private struct Name {
      let id: EntryID
      let dataClass: DataClass
    }

    init(_ trees: [SelectedTree]) { self.trees = trees }

    /// Records a name of a file.
    mutating func record(
      _ identity: FileIdentity, size: UInt64, of id: EntryID, _ dataClass: DataClass
    ) {
      let file = File(identity: identity, size: size)
      if let known = first[file],
        !trees.logicalPath(of: id).isBeforeInTree(trees.logicalPath(of: known.id))
      {
        return
      }
      first[file] = Name(id: id, dataClass: dataClass)
    }

    /// Adds each file to the total of its class; returns the sum.
    func add(to totals: inout [DataClass: Totals.Class]) -> UInt64 {
      for (file, name) in first { totals[name.dataClass]?.bytes.addClamping(file.size) }
      return first.keys.lazy.map(\.size).clampedSum
    }
  }
}

extension ByteString {
  /// Whether a walk of the tree visits this path first: entries in a directory precede those beside
  /// it, so `a/b` precedes `a.b`.
  fileprivate func isBeforeInTree(_ other: ByteString) -> Bool {
    bytes.lexicographicallyPrecedes(other.bytes) { left, right in
      Self.rank(left) < Self.rank(right)
    }
  }

  /// Names contain no NUL, so a slash can rank as one.
  private static func rank(_ byte: UInt8) -> UInt8 { byte == UInt8(ascii: "/") ? 0 : byte }
}

public import ArchiveStore
internal import DatabaseCapture
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// What a backup stored, and what it could not.
public struct BackupReport: Sendable {
  /// What the snapshot holds, by data class.
  public private(set) var classes: [ClassTotal] = []
  /// Files in the snapshot.
  public private(set) var files = 0
  /// Entries of all kinds in the snapshot.
  public private(set) var entries = 0
  /// Bytes of the files in the snapshot; one of several names counts once.
  public private(set) var bytes: UInt64 = 0
  /// What the policy keeps and could not be read: it is not in the snapshot, or not whole.
  public internal(set) var unreadable: [PathRemark] = []
  /// What is in the snapshot, but with a remark.
  public internal(set) var warnings: [PathRemark] = []
  /// How each database of which something was read was captured.
  public internal(set) var databases: [DatabaseRecord] = []
  /// What is to be said besides, of no path.
  public internal(set) var remarks: [String] = []
  /// Index objects of the repository that cannot be used: what they alone name was stored again.
  public internal(set) var damagedIndexes: [StoreError] = []
  /// Files that were opened.
  public internal(set) var opened = 0
  /// Whether the snapshot would have held what the source's last one holds, and so was not written.
  public internal(set) var isUnchanged = false
  /// The snapshot, when one was written.
  public internal(set) var snapshot: StoredSnapshot?
  /// What was written to the repository.
  public internal(set) var statistics: WritingStatistics?
  /// How long it took, in seconds.
  public internal(set) var seconds = 0.0

  init() {}

  /// Bytes that were added to the repository.
  public var storedBytes: UInt64 { statistics?.storedBytes ?? 0 }

  /// Whether all that the policy keeps is in the snapshot, and nothing of it may be torn.
  public var isComplete: Bool { unreadable.isEmpty && databasesAsTheyStood.isEmpty }

  /// The databases that were in use all the time: each may be damaged in the snapshot.
  public var databasesAsTheyStood: [DatabaseRecord] {
    databases.filter { $0.how == CaptureMethod.asItStood.rawValue }
  }

  /// Takes over what was found amiss.
  mutating func add(_ findings: BackupFindings) {
    unreadable += findings.unreadable
    warnings += findings.warnings
    databases += findings.databases.sorted { $0.path < $1.path }
    remarks += findings.remarks
    unreadable.sort { $0.path < $1.path }
    warnings.sort { $0.path < $1.path }
  }

  /// Names containers that were removed before the last scan of the run.
  mutating func addRemoved(_ containers: [Container]) {
    warnings += containers.map {
      PathRemark(path: $0.logicalPrefix, remark: "it was removed during the backup")
    }
    warnings.sort { $0.path < $1.path }
  }

  /// Counts what is in the snapshot: all that is kept of the scans but what was missed.
  mutating func count(_ trees: [SelectedTree], _ findings: BackupFindings) {
    var totals: [DataClass: ClassTotal] = [:]
    var linked = LinkedBytes()
    for tree in trees where !tree.isEmpty { count(tree, findings, &totals, &linked) }
    bytes.addClamping(linked.add(to: &totals))
    classes = totals.values.sorted { $0.name < $1.name }
  }

  private mutating func count(
    _ tree: SelectedTree, _ findings: BackupFindings, _ totals: inout [DataClass: ClassTotal],
    _ linked: inout LinkedBytes
  ) {
    var isMissing = MissingEntries(tree, findings.missing)
    var (last, total) = (DataClass.unknown, ClassTotal(name: "", files: 0, bytes: 0))
    for (index, entry) in tree.scan.entries.enumerated()
    where entry.fate != .excluded && !isMissing.check(index) {
      let dataClass = entry.verdicts.keep.dataClass
      if dataClass != last || total.name.isEmpty {
        if !total.name.isEmpty { totals[last] = total }
        total = totals[dataClass] ?? ClassTotal(name: dataClass.rawValue, files: 0, bytes: 0)
        last = dataClass
      }
      entries += 1
      guard entry.status.kind == .file else { continue }
      let read = findings.sizes.isEmpty ? nil : findings.sizes[tree.id(index)]
      let size = read ?? entry.status.size
      files += 1
      total.files += 1
      if entry.status.links > 1 {
        linked.note(entry.status.identity, size: size, at: tree.scan.logicalPath(index), dataClass)
      } else {
        bytes.addClamping(size)
        total.bytes.addClamping(size)
      }
    }
    if !total.name.isEmpty { totals[last] = total }
    for extra in findings.extras where extra.owner.container == tree.number {
      let dataClass = tree.scan.entries[Int(extra.owner.index)].verdicts.keep.dataClass
      entries += 1
      files += 1
      bytes.addClamping(extra.size)
      totals[dataClass]?.files += 1
      totals[dataClass]?.bytes.addClamping(extra.size)
    }
  }
}

public import ArchiveStore
internal import PolicyEngine
internal import SystemIO

/// What a backup stored, and what it could not.
public struct BackupReport: Sendable {
  /// What the snapshot holds, by data class.
  public var classes: [ClassTotal] { totals.sorted { $0.key < $1.key }.map(\.value) }
  /// Files in the snapshot.
  public private(set) var files = 0
  /// Entries of all kinds in the snapshot.
  public private(set) var entries = 0
  /// Bytes of the files in the snapshot, holes not counted.
  public private(set) var bytes: UInt64 = 0
  /// What the policy keeps and could not be read: it is not in the snapshot, or not whole.
  public internal(set) var unreadable: [PathRemark] = []
  /// What is in the snapshot, but with a remark.
  public internal(set) var warnings: [PathRemark] = []
  /// The snapshot, when one was written.
  public internal(set) var snapshot: StoredSnapshot?
  /// What was written to the repository.
  public internal(set) var statistics: WritingStatistics?
  /// How long it took, in seconds.
  public internal(set) var seconds = 0.0

  private var totals: [String: ClassTotal] = [:]

  init() {}

  /// Bytes that were added to the repository.
  public var storedBytes: UInt64 { statistics?.storedBytes ?? 0 }

  /// Whether all that the policy keeps is in the snapshot.
  public var isComplete: Bool { unreadable.isEmpty }

  mutating func count(_ stored: TreeEntry, _ scanned: ScannedEntry) {
    entries += 1
    let name = scanned.verdicts.keep.dataClass.rawValue
    var total = totals[name] ?? ClassTotal(name: name, files: 0, bytes: 0)
    if case .file(let content) = stored.node {
      let size = content.size
      files += 1
      bytes += size
      total.files += 1
      total.bytes += size
    }
    totals[name] = total
  }

  /// Notes what could not be read; what is gone by now is no longer the policy's to keep.
  mutating func missed(_ path: ByteString, _ error: SystemError) {
    if error.isMissing {
      warnings.append(PathRemark(path: path, remark: "it was removed during the backup"))
    } else {
      unreadable.append(PathRemark(path: path, remark: error.reason))
    }
  }

  mutating func changedWhileRead(_ path: ByteString) {
    let remark = "it changed each time it was read, and is stored as it was read last"
    warnings.append(PathRemark(path: path, remark: remark))
  }

  /// Takes over what a part of the backup reports.
  mutating func add(_ other: BackupReport) {
    files += other.files
    entries += other.entries
    bytes += other.bytes
    unreadable += other.unreadable
    warnings += other.warnings
    for (name, total) in other.totals {
      var sum = totals[name] ?? ClassTotal(name: name, files: 0, bytes: 0)
      sum.files += total.files
      sum.bytes += total.bytes
      totals[name] = sum
    }
  }
}

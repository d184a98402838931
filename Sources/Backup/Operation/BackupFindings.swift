internal import ArchiveStore
internal import SystemIO

/// The problems that a backup found, and the differences between its scan and the stored data.
struct BackupFindings: Sendable {
  /// Entries included by the policy that could not be read.
  private(set) var unreadable: [PathRemark] = []
  /// Entries in the snapshot that have a warning.
  private(set) var warnings: [PathRemark] = []
  /// Remarks that concern no single path.
  private(set) var remarks: [String] = []
  /// Entries missing from the snapshot, with everything below them.
  var missing: Set<EntryID> = []
  /// Missing entries that were removed or replaced after the scan.
  private(set) var vanished: Set<EntryID> = []
  /// The sizes of files whose size at reading differs from the scanned one.
  var sizes: [EntryID: UInt64] = [:]

  /// The capture method of each database.
  private(set) var databases: [DatabaseRecord] = []
  /// Files created after the scan, each with the entry whose data class it has.
  private(set) var extras: [(owner: EntryID, size: UInt64)] = []

  /// Records how a database was captured.
  mutating func note(_ database: DatabaseRecord) { databases.append(database) }

  /// Records a file created after the scan.
  mutating func addExtra(of owner: EntryID, size: UInt64) { extras.append((owner, size)) }

  /// Records an entry that could not be read. An entry removed since the scan is only a warning.
  mutating func miss(_ entry: EntryID, at path: ByteString, error: SystemError) {
    missing.insert(entry)
    if error.isGoneOrReplaced { vanished.insert(entry) }
    missPart(path, error)
  }

  /// Records data of an entry that could not be read. Data removed since the scan is only a
  /// warning.
  mutating func missPart(_ path: ByteString, _ error: SystemError) {
    if error.isMissing {
      warn(path, "it was removed during the backup")
    } else {
      unreadable.append(PathRemark(path: path, remark: error.reason))
    }
  }

  /// Records an entry that was moved or replaced in every round.
  mutating func noteMoved(_ path: ByteString) {
    warnings.removeAll { $0.path == path }
    unreadable.removeAll { $0.path == path }
    unreadable.append(
      PathRemark(
        path: path,
        remark: "it was moved or replaced repeatedly during the backup: run the backup again"
      ))
  }

  mutating func warn(_ path: ByteString, _ remark: String) {
    warnings.append(PathRemark(path: path, remark: remark))
  }

  mutating func note(_ remark: String) { remarks.append(remark) }
}

internal import ArchiveStore
internal import SystemIO

/// What a backup found amiss, and what it stored otherwise than the scan said.
struct BackupFindings: Sendable {
  /// What the policy keeps and could not be read.
  private(set) var unreadable: [PathRemark] = []
  /// What is in the snapshot, but with a remark.
  private(set) var warnings: [PathRemark] = []
  /// What concerns no path.
  private(set) var remarks: [String] = []
  /// Entries that are not in the snapshot, with all below them.
  var missing: Set<EntryID> = []
  /// Those of them that were no longer at their places, or not themselves.
  private(set) var vanished: Set<EntryID> = []
  /// Files that had another size when they were read.
  var sizes: [EntryID: UInt64] = [:]

  /// How databases were captured.
  private(set) var databases: [DatabaseRecord] = []
  /// Files that came after the scan, and whose class they have.
  private(set) var extras: [(owner: EntryID, size: UInt64)] = []

  /// Notes how a database was captured.
  mutating func note(_ database: DatabaseRecord) { databases.append(database) }

  /// Notes a file that came after the scan.
  mutating func addExtra(of owner: EntryID, size: UInt64) { extras.append((owner, size)) }

  /// Notes what could not be read; what is gone by now is no longer the policy's to keep.
  mutating func miss(_ entry: EntryID, _ path: ByteString, _ error: SystemError) {
    missing.insert(entry)
    if error.isGoneOrReplaced { vanished.insert(entry) }
    missPart(path, error)
  }

  /// Notes what is stored without a part that could not be read.
  mutating func missPart(_ path: ByteString, _ error: SystemError) {
    if error.isMissing {
      warn(path, "it was removed during the backup")
    } else {
      unreadable.append(PathRemark(path: path, remark: error.reason))
    }
  }

  /// Notes an entry that was moved or replaced each time the run came to read it.
  mutating func noteMoving(_ path: ByteString) {
    warnings.removeAll { $0.path == path }
    unreadable.removeAll { $0.path == path }
    unreadable.append(
      PathRemark(
        path: path,
        remark:
          "it was moved or replaced during the backup again and again: run the backup once more"
      ))
  }

  mutating func warn(_ path: ByteString, _ remark: String) {
    warnings.append(PathRemark(path: path, remark: remark))
  }

  mutating func note(_ remark: String) { remarks.append(remark) }
}

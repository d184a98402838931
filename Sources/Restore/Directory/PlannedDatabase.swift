internal import DeviceTransaction
internal import SystemIO

/// A database that a restore changes in an existing directory. The database, its log and its
/// journal are one unit: a log of another state would damage the database when it is opened.
struct PlannedDatabase: Sendable {
  /// The number of its directory, and its name there.
  let directory: Int
  let name: ByteString
  /// Whether the database or a file beside it exists.
  let isPresent: Bool
  /// The entries to write, in the order in which they are put in place; the database is last.
  var members: [Int] = []
  /// The entry of the database file, if it is written.
  var entry: Int?
  /// Files beside it that belong to another state; they are moved away before an entry is put in
  /// place.
  var orphanedSidecars: [ByteString] = []
  /// Whether it was withdrawn during planning; a finished plan has no such database.
  var isWithdrawn = false

  /// Whether an entry failed, so that nothing of the database is restored and the existing files
  /// are kept. If none exists, a log that failed does not prevent the restore of the database.
  func isBroken(_ findings: RestoreFindings) -> Bool {
    (isPresent ? members[...] : members.suffix(1)).contains(where: findings.isUnmade)
  }

  /// Marks all entries of the database as failed.
  func fail(_ findings: RestoreFindings) {
    for member in members where !findings.isUnmade(member) {
      findings.fail(member, JournalStep.brokenItemReason)
    }
  }
}

/// A child of a directory, by its name.
struct DirectoryChild: Hashable {
  let directory: Int
  let name: ByteString
}

extension PlannedDatabase {
  /// The stray files beside it.
  var children: [DirectoryChild] {
    orphanedSidecars.map { DirectoryChild(directory: directory, name: $0) }
  }
}

extension PlannedDeletion {
  /// The child to delete.
  var child: DirectoryChild { DirectoryChild(directory: directory, name: name) }
}

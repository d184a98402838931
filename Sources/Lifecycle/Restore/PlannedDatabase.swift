internal import SystemIO

/// A database that a restore changes in a directory that is there: it, its log and its journal are one
/// unit. A log that belongs to another state of the database would damage it when it is opened.
struct PlannedDatabase: Sendable {
  /// The directory that it is in, and its name there.
  let directory: Int
  let name: ByteString
  /// Whether something of it lies there.
  let isPresent: Bool
  /// The entries that are written of it, the database last, in the order in which they get their place.
  var members: [Int] = []
  /// Its own entry, where that is written.
  var entry: Int?
  /// What lies beside it and belongs to another state of it: it goes away before anything comes.
  var strays: [ByteString] = []
  /// Whether it was taken back while the plan was made: it is not in a finished plan.
  var isWithdrawn = false

  /// What is said of a file that stays for another one's sake.
  static let brokenReason = "a file of the same database could not be restored"

  /// Whether something of it could not be made where something of it lies: then none of it is put, and
  /// what is there stays. Where nothing is there, it comes without a log that could not be made.
  func isBroken(_ findings: RestoreFindings) -> Bool {
    (isPresent ? members[...] : members.suffix(1)).contains(where: findings.isUnmade)
  }

  /// Says of what is not known to be missing that it does not come.
  func fail(_ findings: RestoreFindings) {
    for member in members where !findings.isUnmade(member) {
      findings.fail(member, Self.brokenReason)
    }
  }
}

/// Something in a directory, by its name.
struct DirectoryChild: Hashable {
  let directory: Int
  let name: ByteString
}

extension PlannedDatabase {
  /// What lies beside it and goes away.
  var children: [DirectoryChild] {
    strays.map { DirectoryChild(directory: directory, name: $0) }
  }
}

extension PlannedDeletion {
  /// What is to go.
  var child: DirectoryChild { DirectoryChild(directory: directory, name: name) }
}

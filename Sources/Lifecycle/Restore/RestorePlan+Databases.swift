internal import SystemIO

/// A database that a restore changes in a folder that is there: it, its log and its journal are one
/// unit. A log that belongs to another state of the database would damage it when it is opened.
struct PlannedDatabase: Sendable {
  /// The folder that it is in, and its name there.
  let folder: Int
  let name: ByteString
  /// Whether something of it lies there.
  let isPresent: Bool
  /// The entries that are written of it, the database last, in the order in which they get their place.
  var members: [Int] = []
  /// What lies beside it and belongs to another state of it: it goes away before anything comes.
  var strays: [ByteString] = []

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

/// Where a restore keeps what gives way.
enum Keeping {
  /// In the device's trash.
  case trash
  /// In the staging folder, with which it goes: until then a database can be taken back.
  case staging
  /// Nowhere: nothing gives way.
  case nothing

  /// The root of the steps.
  var root: Int? { self == .nothing ? nil : RestorePlan.StepRoot.kept }
}

/// Databases are placed and taken back as wholes.
extension RestorePlan {
  /// A move of a database's unit.
  struct DatabaseMove {
    let step: JournalStep
    /// The entry that comes by it; nothing where something only goes.
    let entry: Int?
  }

  /// Something in a folder, by its name.
  fileprivate struct FolderChild: Hashable {
    let folder: Int
    let name: ByteString
  }

  /// The moves by which a database gets its place: first goes what is of another state of it, then come
  /// log and journal, then the database.
  func moves(
    of database: PlannedDatabase, unit: Int, without findings: RestoreFindings, keeping: Keeping
  ) -> [DatabaseMove] {
    let strays = database.strays.map { name in
      DatabaseMove(step: stray(named: name, of: database, keeping), entry: nil)
    }
    let members = database.members.filter { !findings.isUnmade($0) }.map { number in
      DatabaseMove(step: step(of: number, keeping), entry: number)
    }
    return (strays + members).map { move in
      var step = move.step
      step.unit = unit
      return DatabaseMove(step: step, entry: move.entry)
    }
  }

  /// A log goes where its database goes, so that both can be opened there: into the trash, or beside it
  /// under another name. What is to be deleted anyway, and the index that SQLite makes anew, only goes.
  private func stray(
    named name: ByteString, of database: PlannedDatabase, _ keeping: Keeping
  ) -> JournalStep {
    let path = tree.path(database.folder, from: 0).appending(name)
    var step = JournalStep(path: path, kept: keeping.root)
    let stays =
      keeping == .trash
      ? database.members.last.map { tree.entries[$0].isPutAside } ?? false : !request.deletes
    if stays, !name.isSharedMemory {
      step.kept = StepRoot.target
      step.keptName = ByteString(Array(name.bytes) + tree.asideSuffix.bytes)
    }
    return step
  }

  /// What has its place with its database.
  var databaseMembers: Set<Int> { Set(databases.flatMap(\.members)) }

  /// A database without its log, or beside another one's, is damaged: it comes whole, or what is there
  /// of it stays. Where nothing is there it is told what it comes without.
  func settleBrokenDatabases(_ findings: RestoreFindings) {
    for database in databases where database.isBroken(findings) { database.fail(findings) }
    tellOfLostLogs(findings)
  }

  private func tellOfLostLogs(_ findings: RestoreFindings) {
    var lost: [FolderChild: ByteString] = [:]
    for (number, entry) in tree.entries.enumerated()
    where entry.kind == .file && findings.isUnmade(number) {
      let name = tree.name(number)
      guard let database = name.databaseOfCompanion else { continue }
      lost[FolderChild(folder: Int(entry.parent), name: database)] = name
    }
    if lost.isEmpty { return }
    for (number, entry) in tree.entries.enumerated()
    where entry.kind == .file && entry.action.isWritten && !findings.isUnmade(number) {
      let child = FolderChild(folder: Int(entry.parent), name: tree.name(number))
      guard let log = lost[child] else { continue }
      findings.remark(
        number,
        "it comes without '\(log)', which could not be restored: it may lack what was written last, "
          + "or be damaged")
    }
  }

  // MARK: - Deletions

  /// What goes by itself: what lies beside a database goes with its unit.
  var removals: [PlannedDeletion] {
    let strays = Set(databases.flatMap(\.children))
    return deletions.filter { deletion in
      deletion.replacement == nil && !strays.contains(deletion.child)
    }
  }

  /// What was to be deleted with databases: how much it was where they came, and where they did not,
  /// why it stayed.
  ///
  /// - Parameter staying: the databases, by their numbers, that stay as they are.
  func deletionsOfStrays(
    besides staying: Set<Int>
  ) -> (gone: RestoreTotals, spared: [PathRemark]) {
    let owners = Dictionary(
      databases.enumerated().flatMap { unit, database in database.children.map { ($0, unit) } },
      uniquingKeysWith: { first, _ in first })
    var (gone, spared) = (RestoreTotals(), [PathRemark]())
    for deletion in deletions {
      guard let unit = owners[deletion.child] else { continue }
      if staying.contains(unit) {
        let database = databases[unit]
        let path = tree.path(deletion.folder, from: place.shownDepth).appending(deletion.name)
        spared.append(
          PathRemark(path: path, remark: "it belongs to '\(database.name)', which stays"))
      } else {
        gone.add(deletion.totals)
      }
    }
    return (gone, spared)
  }
}

extension PlannedDatabase {
  fileprivate var children: [RestorePlan.FolderChild] {
    strays.map { RestorePlan.FolderChild(folder: folder, name: $0) }
  }
}

extension PlannedDeletion {
  fileprivate var child: RestorePlan.FolderChild {
    RestorePlan.FolderChild(folder: folder, name: name)
  }
}

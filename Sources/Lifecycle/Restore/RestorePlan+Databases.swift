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
  /// Its own entry, where that is written.
  var entry: Int?
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

/// Where a restore keeps what of a database gives way.
enum Keeping {
  /// In the device's trash.
  case trash
  /// Beside it, under another name, until the database has come: so it can be taken back, and nothing of
  /// it is lost where the restore is killed.
  case aside
  /// Nowhere: nothing gives way.
  case nothing
}

/// Something in a folder, by its name.
struct FolderChild: Hashable {
  let folder: Int
  let name: ByteString
}

/// The moves by which databases get their places.
struct DatabaseMoves {
  /// A move of a database's unit.
  struct Move {
    var step: JournalStep
    /// The entry that comes by it; nothing where something only goes.
    let entry: Int?
    /// Whether what it keeps is of no use any more once the database has come.
    var isTemporary = false
  }

  private let plan: RestorePlan
  private let findings: RestoreFindings
  private let keeping: Keeping
  private let deleted: Set<FolderChild>

  init(_ plan: RestorePlan, without findings: RestoreFindings, keeping: Keeping) {
    (self.plan, self.findings, self.keeping) = (plan, findings, keeping)
    deleted = plan.databases.isEmpty ? [] : Set(plan.deletions.map(\.child))
  }

  /// The moves of a database, by its number: first goes what is of another state of it, then come log
  /// and journal, then the database.
  func moves(of unit: Int) -> [Move] {
    let database = plan.databases[unit]
    let strays = database.strays.map { stray(named: $0, of: database) }
    let members = database.members.filter { !findings.isUnmade($0) }.map { number in
      let name = plan.tree.name(number)
      return move(name, of: database, entry: number, isWanted: false)
    }
    return (strays + members).map { move in
      var move = move
      move.step.unit = unit
      return move
    }
  }

  /// What is to be deleted anyway goes when the database has come; the rest stays beside it.
  private func stray(named name: ByteString, of database: PlannedDatabase) -> Move {
    let child = FolderChild(folder: database.folder, name: name)
    return move(name, of: database, entry: nil, isWanted: !deleted.contains(child))
  }

  /// - Parameter isWanted: whether what stands there is to be there afterwards, under another name.
  private func move(
    _ name: ByteString, of database: PlannedDatabase, entry: Int?, isWanted: Bool
  ) -> Move {
    let path = plan.tree.path(database.folder, from: 0).appending(name)
    let source = entry.map { _ in RestorePlan.StepRoot.staged }
    var move = Move(step: JournalStep(path: path, source: source), entry: entry)
    let isWithDatabase = isPutAside(database.entry)
    let stays = isWithDatabase || isPutAside(entry)
    if keeping == .trash, !stays {
      move.step.kept = RestorePlan.StepRoot.kept
    } else if keeping != .nothing {
      move.step.kept = RestorePlan.StepRoot.target
      // A database that stays does so with its log, under names by which both can be opened.
      move.step.keptName =
        isWithDatabase
        ? plan.tree.asideName(
          of: database.name, followedBy: Array(name.bytes)[database.name.count...])
        : plan.tree.asideName(of: name)
      move.isTemporary = !stays && !isWanted
    }
    return move
  }

  private func isPutAside(_ entry: Int?) -> Bool {
    entry.map { plan.tree.entries[$0].isPutAside } ?? false
  }
}

/// Databases are placed and taken back as wholes.
extension RestorePlan {
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

  /// What lies beside databases that come, is of another state of them, and is not to be deleted: it is
  /// moved away with what gives way.
  public var displaced: [PathRemark] { displaced(besides: []) }

  /// The same without that of databases that stay, by their numbers.
  func displaced(besides staying: Set<Int>) -> [PathRemark] {
    if databases.isEmpty { return [] }
    let deleted = Set(deletions.map(\.child))
    return databases.enumerated().filter { !staying.contains($0.offset) }.flatMap { _, database in
      database.children.filter { !deleted.contains($0) }.map { child in
        PathRemark(
          path: tree.path(child.folder, from: place.shownDepth).appending(child.name),
          remark: "it is of another state of '\(database.name)'")
      }
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
  /// What lies beside it and goes away.
  var children: [FolderChild] {
    strays.map { FolderChild(folder: folder, name: $0) }
  }
}

extension PlannedDeletion {
  /// What is to go.
  var child: FolderChild { FolderChild(folder: folder, name: name) }
}

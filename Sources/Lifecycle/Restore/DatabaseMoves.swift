internal import SystemIO

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
  private let deleted: Set<DirectoryChild>

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
    let child = DirectoryChild(directory: database.directory, name: name)
    return move(name, of: database, entry: nil, isWanted: !deleted.contains(child))
  }

  /// - Parameter isWanted: whether what stands there is to be there afterwards, under another name.
  private func move(
    _ name: ByteString, of database: PlannedDatabase, entry: Int?, isWanted: Bool
  ) -> Move {
    let path = plan.tree.path(database.directory, from: 0).appending(name)
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

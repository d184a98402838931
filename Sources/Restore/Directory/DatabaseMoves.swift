internal import DeviceTransaction
internal import SystemIO

/// Where a restore keeps the files of a database that it replaces.
enum Keeping {
  /// In the device's trash.
  case trash
  /// Beside the database under another name until the database is in place, so that the replacement
  /// can be rolled back and a killed restore loses nothing.
  case aside
  /// Nowhere: nothing is replaced.
  case nothing
}

/// The moves that put databases in place.
struct DatabaseMoves {
  /// A move of one file of a database unit.
  struct Move {
    var step: JournalStep
    /// The entry that the move puts in place; nil if it only removes a file.
    let entry: Int?
    /// Whether the kept file is removed once the database is in place.
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

  /// Returns the moves for the database with a number: first, files of another state of the
  /// database are moved away; then the log and the journal are put in place, then the database.
  func moves(of unit: Int) -> [Move] {
    let database = plan.databases[unit]
    let orphanedSidecars = database.orphanedSidecars.map { orphan(named: $0, of: database) }
    let members = database.members.filter { !findings.isUnmade($0) }.map { number in
      let name = plan.tree.name(number)
      return move(name, of: database, entry: number, isWanted: false)
    }
    return (orphanedSidecars + members).map { move in
      var move = move
      move.step.item = unit
      return move
    }
  }

  /// Returns the move for a stray file. A file that the plan deletes is removed once the database
  /// is in place; others remain beside it.
  private func orphan(named name: ByteString, of database: PlannedDatabase) -> Move {
    let child = DirectoryChild(directory: database.directory, name: name)
    return move(name, of: database, entry: nil, isWanted: !deleted.contains(child))
  }

  /// - Parameter isWanted: whether the existing file is kept permanently, under another name.
  private func move(
    _ name: ByteString, of database: PlannedDatabase, entry: Int?, isWanted: Bool
  ) -> Move {
    let path = plan.tree.path(database.directory, from: 0).appending(name)
    let source = entry.map { _ in RestorePlan.StepRoot.staged }
    var move = Move(step: JournalStep(path: path, source: source), entry: entry)
    let isWithDatabase = isMovedAside(database.entry)
    let stays = isWithDatabase || isMovedAside(entry)
    if keeping == .trash, !stays {
      move.step.kept = RestorePlan.StepRoot.kept
    } else if keeping != .nothing {
      move.step.kept = RestorePlan.StepRoot.target
      // A kept database keeps its log, under matching names so that both can be opened together.
      move.step.keptName =
        isWithDatabase
        ? plan.tree.asideName(
          of: database.name, followedBy: Array(name.bytes)[database.name.count...])
        : plan.tree.asideName(of: name)
      move.isTemporary = !stays && !isWanted
    }
    return move
  }

  private func isMovedAside(_ entry: Int?) -> Bool {
    entry.map { plan.tree.entries[$0].isMovedAside } ?? false
  }
}

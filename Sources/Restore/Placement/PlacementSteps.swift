package import DeviceTransaction
internal import SystemIO

/// The journal's steps that put entries in place, in the order in which a restore applies them.
package struct PlacementSteps {
  /// The numbers of the steps' roots.
  package enum Root {
    static let target = 0
    static let staged = 1
    package static let kept = 2
  }

  /// Where a restore keeps the files of a database that it replaces.
  enum Keeping {
    /// In the device's trash.
    case trash
    /// Beside the database under another name until the database is in place, so that the
    /// replacement can be rolled back and a killed restore loses nothing.
    case aside
    /// Nowhere: nothing is replaced.
    case nothing
  }

  /// A move of one file of a database.
  struct Move {
    var step: JournalStep
    /// The entry that the move puts in place, or whose place it clears; nil for a file that the
    /// snapshot lacks.
    let entry: Int?
    /// Whether the kept file is removed once the database is in place.
    var isTemporary = false
  }

  private let plan: RestorePlan
  private let findings: RestoreFindings
  private let keeping: Keeping
  private let deleted: Set<RestorePlan.Child>

  init(_ plan: RestorePlan, without findings: RestoreFindings, keeping: Keeping) {
    (self.plan, self.findings, self.keeping) = (plan, findings, keeping)
    deleted = plan.databases.isEmpty ? [] : Set(plan.deletions.map(\.child))
  }

  /// Returns the moves for the database with a number: first an existing database is moved away,
  /// then files of another state of it; then the log and the journal are put in place, and last the
  /// database. So no database is ever beside the log of another one: a program that opens it after
  /// an interruption would write that log into it.
  func moves(of number: Int) -> [Move] {
    let database = plan.databases[number]
    var moves = database.orphanedSidecars.map { orphan(named: $0, of: database) }
    moves += database.members.filter { !findings.isUnmade($0) }.map { member in
      let name = plan.tree.name(member)
      return move(name, of: database, entry: member, isWanted: false)
    }
    if moves.count > 1, let last = moves.last, let entry = last.entry, entry == database.entry,
      keeping != .nothing, plan.tree.entries[entry].action == .replace
    {
      var away = last
      away.step.source = nil
      moves.insert(away, at: 0)
      let placed = moves.count - 1
      (moves[placed].step.kept, moves[placed].step.keptName) = (nil, nil)
      moves[placed].isTemporary = false
    }
    for position in moves.indices { moves[position].step.item = number }
    return moves
  }

  /// Returns the move for a stray file. A file that the plan deletes is removed once the database
  /// is in place; others remain beside it.
  private func orphan(named name: ByteString, of database: RestorePlan.Database) -> Move {
    let child = RestorePlan.Child(directory: database.directory, name: name)
    return move(name, of: database, entry: nil, isWanted: !deleted.contains(child))
  }

  /// - Parameter isWanted: whether the existing file is kept permanently, under another name.
  private func move(
    _ name: ByteString, of database: RestorePlan.Database, entry: Int?, isWanted: Bool
  ) -> Move {
    let path = plan.tree.path(database.directory, from: 0).appending(name)
    let source = entry.map { _ in Root.staged }
    var move = Move(step: JournalStep(path: path, source: source), entry: entry)
    let isWithDatabase = isMovedAside(database.entry)
    let stays = isWithDatabase || isMovedAside(entry)
    if keeping == .trash, !stays {
      move.step.kept = Root.kept
    } else if keeping != .nothing {
      move.step.kept = Root.target
      // A kept database keeps its log, under matching names so that both can be opened together.
      move.step.keptName =
        isWithDatabase
        ? plan.tree.asideName(
          ofDatabase: database.name, companion: Array(name.bytes)[database.name.count...],
          numbered: database.asideNumber)
        : entry.map { plan.tree.asideName($0) } ?? plan.tree.asideName(of: name)
      move.isTemporary = !stays && !isWanted
    }
    return move
  }

  private func isMovedAside(_ entry: Int?) -> Bool {
    entry.map { plan.tree.entries[$0].isMovedAside } ?? false
  }

  // MARK: - All steps

  /// Creates the steps of a restore that keeps replaced entries in a trash, or nowhere.
  package init(_ plan: RestorePlan, without findings: RestoreFindings, hasTrash: Bool) {
    self.init(plan, without: findings, keeping: hasTrash ? .trash : .nothing)
  }

  /// The steps for all created entries and all deletions. Without a trash nothing is kept.
  package var all: JournalSteps {
    let (tree, trash) = (plan.tree, keeping == .trash ? Root.kept : nil)
    var steps = JournalSteps()
    let add = { (step: JournalStep) in
      if step.source != nil || step.kept != nil { steps.append(step) }
    }
    for (number, database) in plan.databases.enumerated() where !findings.isBroken(database) {
      for move in moves(of: number) { add(move.step) }
    }
    let databaseMembers = plan.databaseMembers
    for number in tree.topmostWritten
    where !findings.isUnmade(number) && !databaseMembers.contains(number) {
      add(step(of: number, trash))
    }
    for deletion in plan.removals {
      let path = tree.path(deletion.directory, from: 0).appending(deletion.name)
      add(JournalStep(path: path, kept: trash))
    }
    return steps
  }

  /// Returns the step that puts an entry in place.
  private func step(of number: Int, _ trash: Int?) -> JournalStep {
    var step = JournalStep(
      path: plan.tree.path(number, from: 0), source: Root.staged, kept: trash)
    if plan.tree.entries[number].isMovedAside {
      (step.kept, step.keptName) = (Root.target, plan.tree.asideName(number))
    }
    return step
  }
}

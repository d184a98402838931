internal import SystemIO

/// Databases in a directory that is merged into get their place as wholes, by the steps of the journal
/// whether there is one or not: so what cannot be placed whole is taken back.
extension Placement {
  /// Places the databases, each of them whole or not at all.
  mutating func placeDatabases(isStopping: () -> Bool) throws {
    if plan.databases.isEmpty { return }
    let keeping: Keeping = trash != nil ? .trash : note != nil ? .nothing : .aside
    let databases = DatabaseMoves(plan, without: run.findings, keeping: keeping)
    let runner = StepRunner(
      try run.roots(keptIn: trash?.path), note, isFresh: true)
    for (unit, database) in plan.databases.enumerated() {
      if database.isBroken(run.findings) {
        staying.insert(unit)
        continue
      }
      if isStopping() { throw interruption() }
      let moves = databases.moves(of: unit)
      do throws(UnitFailure) {
        _ = try runner.takeAll(moves.map(\.step))
        placed += moves.count { $0.entry != nil }
      } catch {
        staying.insert(unit)
        try tell(error, of: database, moves)
        continue
      }
      // Only what this run put there: something else may have such a name.
      for name in moves.filter(\.isTemporary).compactMap({ runner.keptNames[$0.step] }) {
        remove(name, of: database)
      }
    }
  }

  /// Removes what gave way, when all has come that it gave way to.
  private mutating func remove(_ name: ByteString, of database: PlannedDatabase) {
    do throws(SystemError) {
      try target.within(database.directory) { directory throws(SystemError) in
        try directory.removeTree(name)
      }
    } catch {
      if error.isMissing { return }
      run.findings.remark(
        database.directory, "'\(name)' gave way and cannot be removed: \(error.reason)")
    }
  }

  /// Tells why a database stays as it is.
  ///
  /// - Throws: `LifecycleError` where it does not: then nothing else is tried.
  private mutating func tell(
    _ failure: UnitFailure, of database: PlannedDatabase, _ moves: [DatabaseMoves.Move]
  ) throws {
    let name = moves[failure.step].step.name
    if let (step, error) = failure.left {
      isUnstable = true
      throw LifecycleError(
        .failed,
        "cannot restore '\(name)' of '\(database.name)': \(failure.error.reason); "
          + "and '\(step.name)' cannot be as it was: \(error.reason)",
        hint: note == nil
          ? "what was there is beside it, under names with '\(plan.tree.asideSuffix)'"
          : "'sandboxctl recover' finishes it or takes it back")
    }
    if let number = moves[failure.step].entry {
      try run.note(number, failure.error)
    } else {
      if failure.error.endsEverything { throw LifecycleError(failure.error) }
      run.findings.remark(
        database.directory, "cannot move '\(name)' away: \(failure.error.reason)")
    }
    database.fail(run.findings)
  }
}

internal import DeviceTransaction
internal import SystemIO

/// Databases in a merged directory are put in place as units. The journal's steps are used even
/// without a journal, so that a unit that cannot be placed completely is rolled back.
extension Placement {
  /// Puts the databases in place, each completely or not at all.
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
      do throws(StepRunner.Failure) {
        _ = try runner.applyAll(moves.map(\.step))
        placed += moves.count { $0.entry != nil }
      } catch {
        staying.insert(unit)
        try tell(error, of: database, moves)
        continue
      }
      // Only files that this run kept: another file may have such a name.
      for name in moves.filter(\.isTemporary).compactMap({ runner.keptNames[$0.step] }) {
        remove(name, of: database)
      }
    }
  }

  /// Removes a replaced file after its database is in place.
  private mutating func remove(_ name: ByteString, of database: PlannedDatabase) {
    do throws(SystemError) {
      try target.within(database.directory) { directory throws(SystemError) in
        try directory.removeTree(name)
      }
    } catch {
      if error.isMissing { return }
      run.findings.remark(
        database.directory, "cannot remove the replaced file '\(name)': \(error.reason)")
    }
  }

  /// Records why a database was not restored.
  ///
  /// - Throws: `OperationError` if the database could not be rolled back; nothing else is tried
  ///   then.
  private mutating func tell(
    _ failure: StepRunner.Failure, of database: PlannedDatabase, _ moves: [DatabaseMoves.Move]
  ) throws {
    let name = moves[failure.step].step.name
    if let (step, error) = failure.left {
      isUnstable = true
      throw OperationError(
        .failed,
        "cannot restore '\(name)' of '\(database.name)': \(failure.error.reason); "
          + "and cannot roll back '\(step.name)': \(error.reason)",
        hint: note == nil
          ? "the previous files are beside it; their names contain '\(plan.tree.asideSuffix)'"
          : "'sandboxctl recover' finishes it or rolls it back")
    }
    if let number = moves[failure.step].entry {
      try run.note(number, failure.error)
    } else {
      if failure.error.endsEverything { throw OperationError(failure.error) }
      run.findings.remark(
        database.directory, "cannot move '\(name)' away: \(failure.error.reason)")
    }
    database.fail(run.findings)
  }
}

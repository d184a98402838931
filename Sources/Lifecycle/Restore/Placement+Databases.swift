internal import SystemIO

/// Databases in a folder that is merged into get their place as wholes, by the steps of the journal
/// whether there is one or not: so what cannot be placed whole is taken back.
extension Placement {
  /// Places the databases, each of them whole or not at all.
  mutating func placeDatabases(isStopping: () -> Bool) throws {
    if plan.databases.isEmpty { return }
    let keeping: Keeping = trash != nil ? .trash : note != nil ? .nothing : .staging
    let kept = keeping == .staging ? run.keptPath : trash?.path
    let runner = StepRunner(try run.roots(keptIn: kept), note)
    for (unit, database) in plan.databases.enumerated() {
      if database.isBroken(run.findings) {
        staying.insert(unit)
        continue
      }
      if isStopping() { throw interruption() }
      let moves = plan.moves(of: database, unit: unit, without: run.findings, keeping: keeping)
      do throws(UnitFailure) {
        _ = try runner.takeAll(moves.map(\.step), resuming: false)
        placed += moves.count { $0.entry != nil }
      } catch {
        staying.insert(unit)
        try tell(error, of: database, moves)
      }
    }
  }

  /// Tells why a database stays as it is.
  private func tell(
    _ failure: UnitFailure, of database: PlannedDatabase, _ moves: [RestorePlan.DatabaseMove]
  ) throws {
    for (step, error) in failure.left {
      run.findings.remark(
        database.folder, "what '\(step.name)' was cannot be brought back: \(error.reason)")
    }
    if let number = moves[failure.step].entry {
      try run.note(number, failure.error)
    } else {
      if failure.error.endsEverything { throw LifecycleError(failure.error) }
      let name = moves[failure.step].step.name
      run.findings.remark(
        database.folder, "cannot move '\(name)' away: \(failure.error.reason)")
    }
    database.fail(run.findings)
  }
}

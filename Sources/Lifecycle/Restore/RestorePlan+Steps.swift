internal import SystemIO

/// The steps by which a restore's placement gives everything its place, for the journal: in the order
/// in which it takes them.
extension RestorePlan {
  /// The roots of the steps, by their numbers.
  enum StepRoot {
    static let target = 0
    static let staged = 1
    static let kept = 2
  }

  /// The steps of all that was made, and of all that is to go. Without a trash nothing gives way.
  func steps(without findings: RestoreFindings, hasTrash: Bool) -> JournalSteps {
    let trash = hasTrash ? StepRoot.kept : nil
    let moves = DatabaseMoves(self, without: findings, keeping: hasTrash ? .trash : .nothing)
    var steps = JournalSteps()
    let add = { (step: JournalStep) in
      if step.source != nil || step.kept != nil { steps.append(step) }
    }
    for (unit, database) in databases.enumerated() where !database.isBroken(findings) {
      for move in moves.moves(of: unit) { add(move.step) }
    }
    let databaseMembers = databaseMembers
    var number = 1
    while number < tree.entries.count {
      let entry = tree.entries[number]
      guard entry.action.isWritten, !entry.isMerged else {
        number += 1
        continue
      }
      if !findings.isUnmade(number), !databaseMembers.contains(number) {
        add(step(of: number, trash))
      }
      number = tree.end(of: number)
    }
    for deletion in removals {
      let path = tree.path(deletion.directory, from: 0).appending(deletion.name)
      add(JournalStep(path: path, kept: trash))
    }
    return steps
  }

  /// The step by which an entry gets its place.
  private func step(of number: Int, _ trash: Int?) -> JournalStep {
    var step = JournalStep(
      path: tree.path(number, from: 0), source: StepRoot.staged, kept: trash)
    if tree.entries[number].isPutAside {
      (step.kept, step.keptName) = (StepRoot.target, tree.asideName(number))
    }
    return step
  }

  /// Whether anything that is there gives way, and has to be kept.
  var displaces: Bool {
    replaces.entries + deletes.entries > 0 || databases.contains { !$0.strays.isEmpty }
  }
}

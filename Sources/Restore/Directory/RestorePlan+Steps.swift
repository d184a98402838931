package import DeviceTransaction
internal import SystemIO

/// The journal's steps that put entries in place, in the order in which a restore takes them.
extension RestorePlan {
  /// The numbers of the steps' roots.
  package enum StepRoot {
    static let target = 0
    static let staged = 1
    package static let kept = 2
  }

  /// Returns the steps for all created entries and all deletions. Without a trash nothing is kept.
  package func steps(without findings: RestoreFindings, hasTrash: Bool) -> JournalSteps {
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

  /// Returns the step that puts an entry in place.
  private func step(of number: Int, _ trash: Int?) -> JournalStep {
    var step = JournalStep(
      path: tree.path(number, from: 0), source: StepRoot.staged, kept: trash)
    if tree.entries[number].isMovedAside {
      (step.kept, step.keptName) = (StepRoot.target, tree.asideName(number))
    }
    return step
  }

  /// Whether an existing entry is replaced or deleted, and has to be kept.
  package var displaces: Bool {
    replaces.entries + deletes.entries > 0 || databases.contains { !$0.orphanedSidecars.isEmpty }
  }
}

internal import SystemIO

/// The steps by which a restore's placement gives everything its place, for the journal: in the order
/// in which it takes them.
extension RestorePlan {
  /// The roots of the steps, by their numbers.
  enum StepRoot {
    static let target = 0
    static let staged = 1
    static let trash = 2
  }

  /// The steps of all that was made, and of all that is to go. Without a trash nothing gives way.
  func steps(without findings: RestoreFindings, hasTrash: Bool) -> [JournalStep] {
    let trash = hasTrash ? StepRoot.trash : nil
    var steps: [JournalStep] = []
    for database in databases where !database.isBroken(findings) {
      steps += database.strays.map { stray(named: $0, of: database, trash) }
    }
    let companions = companionsByDatabase
    var isPlaced: Set<Int> = []
    var number = 1
    while number < tree.entries.count {
      let entry = tree.entries[number]
      guard entry.action.isWritten, !entry.isMerged else {
        number += 1
        continue
      }
      for next in (companions[number] ?? []) + [number]
      where !findings.isUnmade(next) && isPlaced.insert(next).inserted {
        steps.append(step(of: next, trash))
      }
      number = tree.end(of: number)
    }
    for deletion in removals(without: findings) {
      let path = tree.path(deletion.folder, from: 0).appending(deletion.name)
      steps.append(JournalStep(path: path, kept: trash))
    }
    return steps.filter { $0.source != nil || $0.kept != nil }
  }

  private func step(of number: Int, _ trash: Int?) -> JournalStep {
    var step = JournalStep(
      path: tree.path(number, from: 0), source: StepRoot.staged, kept: trash)
    if tree.entries[number].isPutAside {
      (step.kept, step.keptName) = (StepRoot.target, tree.asideName(number))
    }
    return step
  }

  private func stray(
    named name: ByteString, of database: PlannedDatabase, _ trash: Int?
  ) -> JournalStep {
    var step = JournalStep(path: tree.path(database.folder, from: 0).appending(name), kept: trash)
    if case .stays(let aside) = fate(ofStray: name, of: database, keeping: true) {
      (step.kept, step.keptName) = (StepRoot.target, aside)
    }
    return step
  }

  /// Whether anything that is there gives way, and has to be kept.
  var displaces: Bool {
    replaces.entries + deletes.entries > 0 || databases.contains { !$0.strays.isEmpty }
  }
}

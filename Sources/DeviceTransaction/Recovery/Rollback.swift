package import SystemIO

/// The rollback of a whole operation that cannot be finished. The last step is undone first, until
/// the device is in its previous state. New entries are moved back to their staging directory, and
/// from there to the trash, since another process may have written to them.
package struct Rollback {
  private let record: JournalRecord
  private let root: ByteString

  package init(_ record: JournalRecord, root: ByteString) {
    (self.record, self.root) = (record, root)
  }

  /// Rolls back all steps and keeps the staged entries where no process uses them.
  ///
  /// Entries in a directory that has been replaced are left unchanged and reported.
  ///
  /// - Parameter isResumed: whether steps may have been rolled back before.
  func run(
    _ outcome: inout RecoveryReport.Recovered, isResumed: Bool, in journal: borrowing Directory
  ) throws(SystemError) {
    outcome.steps = try rollBackSteps(&outcome.failed)
    let hasPlacedEntries = isResumed || outcome.steps > 0
    if !record.steps.isEmpty {
      try OperationJournal.write(
        record.withoutSteps(hasPlacedEntries: hasPlacedEntries), in: journal)
    }
    if !hasPlacedEntries { return }
    let needed = NeededStaging(on: root, besides: record.id)
    for path in record.staging {
      do throws(SystemError) {
        let directory = try Directory.open(resolved: path)
        try StagingDirectory.preserveAbandoned(in: directory, keeping: needed) {
          staging throws(SystemError) in
          try trash(in: directory, probing: staging)
        }
      } catch { if !error.isMissing { throw error } }
    }
  }

  /// Rolls back the steps. Returns the number of steps that had to be undone.
  package func rollBackSteps(_ failed: inout [PathRemark]) throws(SystemError) -> Int {
    let opened = OpenedNote(record.id, root: root)
    // The opened directory must be settled before the directory that contains it moves.
    try opened.settle()
    let runner = StepRunner(record.roots, opened)
    var count = 0
    for step in record.steps.reversed() {
      do throws(SystemError) {
        if try runner.rollBack(step) { count += 1 }
      } catch {
        guard error.isStale else { throw error }
        let path = record.roots[step.root].path.appending(step.path)
        failed.append(PathRemark(path: path, remark: error.reason))
      }
    }
    try record.syncRoots()
    return count
  }

  /// Returns the directory in the trash for the staged entries of a directory.
  package func trash(
    in directory: borrowing Directory, probing probe: borrowing Directory
  ) throws(SystemError) -> TrashDirectory {
    try TrashDirectory(
      of: record, for: TrashDirectory.rolledBack, in: directory, probing: probe, root: root)
  }
}

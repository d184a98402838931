internal import SystemIO

/// Takes back the steps of a whole operation that cannot be finished, the last first: then the device is
/// as it was before. What came goes back to where it was staged, and that to the trash, since somebody
/// may have written into it.
struct Rollback {
  private let record: JournalRecord
  private let root: ByteString

  init(_ record: JournalRecord, root: ByteString) { (self.record, self.root) = (record, root) }

  /// Takes back all that was done, and keeps what was staged where nobody works any more.
  ///
  /// What lies in a directory that is another one by now is left alone, and named.
  ///
  /// - Parameter isGoingOn: whether steps may have been taken back before.
  func run(
    _ outcome: inout RecoveredOperation, isGoingOn: Bool, in journal: borrowing Directory
  ) throws(SystemError) {
    outcome.steps = try takeSteps(&outcome.failed)
    let hasCome = isGoingOn || outcome.steps > 0
    if !record.steps.isEmpty {
      try OperationJournal.write(record.withoutSteps(hasCome: hasCome), in: journal)
    }
    if !hasCome { return }
    for place in record.staging {
      do throws(SystemError) {
        let directory = try Directory.open(resolved: place)
        try StagingDirectory.keepAbandoned(in: directory) { staging throws(SystemError) in
          try trash(in: directory, probing: staging)
        }
      } catch { if !error.isMissing { throw error } }
    }
  }

  /// Takes back the steps; tells how many had to be.
  func takeSteps(_ failed: inout [PathRemark]) throws(SystemError) -> Int {
    let opened = OpenedNote(record.id, root: root)
    // Before what it lies in gets another place.
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

  /// The place in the trash for what was staged in a directory.
  func trash(
    in directory: borrowing Directory, probing probe: borrowing Directory
  ) throws(SystemError) -> TrashDirectory {
    try TrashDirectory(
      of: record, for: TrashDirectory.rolledBack, in: directory, probing: probe, root: root)
  }
}

extension JournalRecord {
  /// The record once all steps were taken back. That must be noted before what is staged goes: a step
  /// of which nothing is staged any more would be taken for one that is to be taken back.
  ///
  /// - Parameter hasCome: whether anything had come, so that what is staged is kept; else it is removed.
  func withoutSteps(hasCome: Bool) -> JournalRecord {
    var record = self
    record.state = hasCome ? .returning : .preparing
    (record.roots, record.steps) = ([], [])
    return record
  }

  /// The record once no step is to be taken any more. That must be noted before what is left of the
  /// staging goes: a step of which nothing is staged any more would be taken for one that was taken.
  var settled: JournalRecord {
    var record = self
    (record.roots, record.steps) = ([], [])
    return record
  }

  /// Makes durable what was moved below the roots.
  func syncRoots() throws(SystemError) {
    for root in roots {
      do throws(SystemError) {
        try Directory.open(resolved: root.path).syncVolume()
      } catch { if !error.isMissing { throw error } }
    }
  }
}

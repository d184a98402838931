package import SandboxModel
package import SystemIO

// A whole operation puts all new entries in place by the steps of one journal, or none. Everything
// is staged next to its destination and synced, the steps are recorded, and then applied. Until the
// steps are recorded the device is unchanged; from then on the operation is finished or rolled back
// as a whole, after an interruption by the next recovery (docs/journal.md).

/// The staging directories of a whole operation, and the steps that put the staged entries in
/// place.
package final class StagedExchange {
  /// The words for an operation in its errors.
  package struct Wording: Sendable {
    /// The verb after "cannot": `update`, `roll back`.
    let verb: String
    /// The noun: `update`, `rollback`.
    let noun: String
    /// The app.
    let subject: ByteString

    /// Creates a wording.
    package init(verb: String, noun: String, subject: ByteString) {
      (self.verb, self.noun, self.subject) = (verb, noun, subject)
    }
  }

  /// A directory in which steps work, with its staging directory.
  package final class StagingArea {
    package let directory: Directory
    package let staging: StagingDirectory

    fileprivate init(
      _ path: ByteString, keeping needed: NeededStaging
    ) throws(SystemError) {
      directory = try Directory.open(resolved: path)
      staging = try StagingDirectory.make(in: directory, keeping: needed)
    }
  }

  package let journal: OperationJournal
  private let device: Device
  private let wording: Wording
  private var areas: [ByteString: StagingArea] = [:]
  /// The directories below which steps work.
  package private(set) var roots: [JournalRecord.Root] = []
  private var steps = JournalSteps()

  /// Creates an exchange on a device under a journal.
  package init(on device: Device, under journal: OperationJournal, _ wording: Wording) {
    self.device = device
    self.journal = journal
    self.wording = wording
  }

  // MARK: - Staging

  /// Records the directories for staging in the journal, and creates the staging directories in
  /// them.
  package func prepare(in directories: [ByteString]) throws(SystemError) {
    try journal.prepare(0, stagingIn: directories)
    let needed = NeededStaging(on: device.root, besides: journal.record.id)
    for directory in directories {
      areas[directory] = try StagingArea(directory, keeping: needed)
    }
  }

  /// Returns the directory at a path, with its staging directory.
  package func area(at path: ByteString) throws(SystemError) -> StagingArea {
    guard let area = areas[path] else { throw SystemError.replaced(path) }
    return area
  }

  /// Returns the index of a root, for use in steps.
  package func root(_ path: ByteString, inode: UInt64?) -> Int {
    let root = JournalRecord.Root(path: path, inode: inode)
    if let number = roots.firstIndex(of: root) { return number }
    roots.append(root)
    return roots.count - 1
  }

  /// Returns the index of the root of an existing directory.
  package func root(_ directory: borrowing Directory) throws(SystemError) -> Int {
    root(directory.path, inode: try directory.status().identity.inode)
  }

  /// Adds a step.
  package func add(_ step: JournalStep) { steps.append(step) }

  /// Syncs the staged entries.
  package func sync() throws(SystemError) {
    for area in areas.values { try area.directory.syncVolume() }
  }

  /// Removes the staging directories if no step was applied or recorded.
  package func abandon() {
    for area in areas.values { try? area.staging.remove() }
  }

  // MARK: - Execution

  /// Records the steps in the journal and applies them. If one cannot be applied, all are rolled
  /// back.
  ///
  /// - Returns: the duration of the renames in seconds.
  package func run() throws(OperationError) -> Double {
    do throws(SystemError) {
      try journal.move(steps, below: roots)
    } catch { throw notBegun(error) }
    let start = Host.monotonicSeconds()
    do throws(SystemError) {
      let runner = StepRunner(roots, journal.opened)
      for item in steps.items {
        runner.addSecondNames(item)
        for step in item { _ = try runner.apply(step) }
      }
    } catch { throw rolledBack(error) }
    return Host.monotonicSeconds() - start
  }

  /// Syncs the volumes and removes the staging directories.
  package func finish() throws(OperationError) {
    do throws(SystemError) {
      try sync()
      for area in areas.values { try area.staging.remove() }
    } catch { throw unfinished(error) }
  }

  /// Rolls back the applied steps. Returns the error that reports this or, if the rollback failed,
  /// that it is left to a recovery.
  private func rolledBack(_ error: SystemError) -> OperationError {
    let back = Rollback(journal.record, root: device.root)
    var failed: [PathRemark] = []
    do throws(SystemError) {
      try journal.rollBack()
      let hasPlacedEntries = try back.rollBackSteps(&failed) > 0
      try journal.forgetSteps(hasPlacedEntries: hasPlacedEntries)
      for area in areas.values {
        if !hasPlacedEntries {
          try area.staging.remove()
        } else {
          try area.staging.preserve(
            in: back.trash(in: area.directory, probing: area.staging.tree))
        }
      }
      Trash(of: device).removeEmpty(journal.record.id)
      try journal.end()
    } catch { return unfinished(error) }
    return failure(
      error,
      failed.first.map { "everything was rolled back except '\($0.path)': \($0.remark)" }
        ?? "the device is unchanged")
  }

  /// Ends an operation whose journal could not be written: no step was applied.
  private func notBegun(_ error: SystemError) -> OperationError {
    do throws(SystemError) {
      try journal.end()
    } catch { return unfinished(error) }
    // Without its journal, nothing needs the staged entries.
    abandon()
    Trash(of: device).removeEmpty(journal.record.id)
    return failure(error, "the device is unchanged")
  }

  private func failure(_ error: SystemError, _ end: String) -> OperationError {
    OperationError(
      .failed, code: error.code, wording.verb, subject: wording.subject,
      reason: error.description,
      hint: [error.hint, end].compactMap { $0 }.joined(separator: "; "))
  }

  private func unfinished(_ error: SystemError) -> OperationError {
    OperationError(
      .failed, code: .recoveryRequired, "finish the \(wording.noun) of", subject: wording.subject,
      reason: error.description,
      hint: "run 'sandboxctl recover' to finish it or roll it back; no data is lost")
  }
}

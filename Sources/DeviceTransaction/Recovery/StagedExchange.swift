package import SandboxModel
package import SystemIO

// A whole operation puts all new entries in place by the steps of one journal, or none. Everything
// is staged next to its destination and synced, the steps are recorded, and then applied. Until the
// steps are recorded the device is unchanged; from then on the operation is finished or rolled back
// as a whole, after an interruption by the next recovery (docs/journal.md).

/// The staging directories of a whole operation, and the steps that put the staged entries in place.
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
  package final class Location {
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
  private var locations: [ByteString: Location] = [:]
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

  /// Records the directories for staging in the journal, and creates the staging directories in them.
  package func prepare(in directories: [ByteString]) throws(SystemError) {
    try journal.prepare(0, stagingIn: directories)
    let needed = NeededStaging(on: device.root, besides: journal.record.id)
    for directory in directories {
      locations[directory] = try Location(directory, keeping: needed)
    }
  }

  /// Returns the directory at a path, with its staging directory.
  package func location(at path: ByteString) throws(SystemError) -> Location {
    guard let location = locations[path] else { throw SystemError.replaced(path) }
    return location
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
    for location in locations.values { try location.directory.syncVolume() }
  }

  /// Removes the staging directories if no step was applied or recorded.
  package func abandon() {
    for location in locations.values { try? location.staging.remove() }
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
      for step in steps { _ = try runner.apply(step) }
    } catch { throw rolledBack(error) }
    return Host.monotonicSeconds() - start
  }

  /// Syncs the volumes and removes the staging directories.
  package func finish() throws(OperationError) {
    do throws(SystemError) {
      try sync()
      for location in locations.values { try location.staging.remove() }
    } catch { throw unfinished(error) }
  }

  /// Rolls back the applied steps. Returns the error that says so, or that the rollback is left to
  /// a recovery if it failed.
  private func rolledBack(_ error: SystemError) -> OperationError {
    let back = Rollback(journal.record, root: device.root)
    var failed: [PathRemark] = []
    do throws(SystemError) {
      try journal.rollBack()
      let hasPlacedEntries = try back.rollBackSteps(&failed) > 0
      try journal.forgetSteps(hasPlacedEntries: hasPlacedEntries)
      for location in locations.values {
        if !hasPlacedEntries {
          try location.staging.remove()
        } else {
          try location.staging.preserve(
            in: back.trash(in: location.directory, probing: location.staging.tree))
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

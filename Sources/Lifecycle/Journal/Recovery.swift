public import PolicyEngine
public import SandboxModel
internal import SystemIO

/// Finishes or takes back what was interrupted on a device (docs/journal.md, "Recovery").
public struct Recovery {
  let device: Device
  private let policy: CompiledPolicy
  private let isForced: Bool

  /// Prepares the recovery of a device; with `isForced` even of apps that run.
  public init(_ device: Device, policy: CompiledPolicy, isForced: Bool = false) {
    self.device = device
    self.policy = policy
    self.isForced = isForced
  }

  /// Finishes or takes back all that was interrupted, the oldest first. What is hindered leaves the
  /// others alone: where another operation on the same app is going on (`busy`), where the app runs, or
  /// its volume takes nothing more (`failed`).
  ///
  /// - Throws: `LifecycleError` when the journal cannot be looked at: nothing is known of any app then.
  public func run() throws(LifecycleError) -> RecoveryReport {
    var report = RecoveryReport()
    for operation in try InterruptedOperation.all(on: device.root) {
      do throws(LifecycleError) {
        if let done = try recover(operation) { report.done.append(done) }
      } catch {
        report.blocked.append(BlockedRecovery(operation: operation, error: error))
      }
    }
    return report
  }

  /// Recovers one operation; nil where another run has done so since it was read.
  func recover(
    _ operation: InterruptedOperation
  ) throws(LifecycleError) -> RecoveredOperation? {
    let record = operation.record
    let scope = RecoveryScope(device, for: record)
    if let place = scope.forbiddenPlace(in: record) {
      throw LifecycleError(
        .failed,
        "cannot recover the \(record.operation) of '\(operation.container)': its journal names "
          + "'\(place)', which is in no container of this device",
        hint: "the journal may have come with a copy of another device: look at "
          + "'\(ControlDirectory.path(ControlDirectory.journal, root: device.root))', and remove it if it "
          + "is not yours")
    }
    let locks = try AppLocks(record.subjects, root: device.root)
    defer { withExtendedLifetime(locks) {} }
    guard try operation.isPending(on: device.root) else { return nil }
    if record.state != .preparing { try requireStopped(operation) }
    var outcome = RecoveredOperation(operation: operation, isFinished: operation.canBeFinished)
    do throws(SystemError) {
      let directory = try ControlDirectory.make(ControlDirectory.journal, root: device.root)
      // Nobody else works on it, with its apps locked: only who looks has its lock for a moment.
      let lock = try FileLock(OperationJournal.lock(record.id), in: directory, waiting: true)
      defer { withExtendedLifetime(lock) {} }
      let opened = OpenedNote(record.id, root: device.root)
      try opened.settle(within: scope)
      switch record.state {
      case .preparing: break
      case .moving: try finish(record, in: directory, &outcome)
      case .returning:
        try Rollback(record, root: device.root).run(
          &outcome, isGoingOn: true, in: directory)
      }
      try removeStaged(record)
      if record.isWhole { removeEmpty(of: record, outcome) }
      try opened.settle()
      try directory.remove(OperationJournal.file(record.id))
      try directory.sync()
      try? directory.remove(OperationJournal.lock(record.id))
    } catch {
      let reason = outcome.reason.map { "\($0); and taking it back: \(error.description)" }
      throw LifecycleError(
        .failed,
        "cannot recover the \(record.operation) of '\(operation.container)': "
          + (reason ?? error.description),
        hint: error.hint ?? "'sandboxctl recover' tries it again")
    }
    return outcome
  }

  /// Takes the steps that are left. Where one of a whole cannot be taken, and that is not for want of
  /// room or for a device that fails, all that were are taken back.
  private func finish(
    _ record: JournalRecord, in journal: borrowing Directory, _ outcome: inout RecoveredOperation
  ) throws(SystemError) {
    do throws(SystemError) {
      try takeSteps(of: record, &outcome)
      try OperationJournal.write(record.settled, in: journal)
    } catch {
      if !record.isWhole || error.endsEverything || error.isLoss { throw error }
      (outcome.isFinished, outcome.reason, outcome.steps) = (false, error.description, 0)
      var record = record
      record.state = .returning
      try OperationJournal.write(record, in: journal)
      try Rollback(record, root: device.root).run(
        &outcome, isGoingOn: false, in: journal)
    }
  }

  private func takeSteps(
    of record: JournalRecord, _ outcome: inout RecoveredOperation
  ) throws(SystemError) {
    let runner = StepRunner(record.roots, OpenedNote(record.id, root: device.root))
    // Those of a whole operation are taken back all together.
    for unit in record.isWhole ? record.steps.singly : record.steps.units {
      do throws(UnitFailure) {
        outcome.steps += try runner.takeAll(unit)
      } catch {
        let reason = error.error
        let isHalfTaken = error.left != nil
        if isHalfTaken || reason.endsEverything || reason.isLoss || record.isWhole { throw reason }
        outcome.failed += record.remarks(on: error, of: Array(unit))
      }
    }
    try record.syncRoots()
  }

  private func removeStaged(_ record: JournalRecord) throws(SystemError) {
    for place in record.staging {
      do throws(SystemError) {
        try StagingDirectory.removeAbandoned(in: Directory.open(resolved: place))
      } catch { if !error.isMissing { throw error } }
    }
  }

  /// Removes what an operation on an app has of directories in which nothing is: in the safe harbor, and in the
  /// trash where it was taken back.
  private func removeEmpty(of record: JournalRecord, _ outcome: RecoveredOperation) {
    if !outcome.isFinished { Trash(of: device).removeEmpty(record.id) }
    for subject in record.subjects where subject.components.first == "apps" {
      guard let name = subject.lastComponent.flatMap({ LogicalName(component: $0) }) else {
        continue
      }
      SafeHarbor.removeEmpty(of: name.identifier, root: device.root)
    }
  }

  private func requireStopped(_ operation: InterruptedOperation) throws(LifecycleError) {
    if isForced { return }
    let subjects = operation.record.subjects
    let scan = DeviceScan.run(device, policy: policy) {
      subjects.contains($0.logicalPrefix.subject)
    }
    guard let sign = RunningApps.signs(in: scan).first else { return }
    throw LifecycleError(
      .failed,
      "cannot finish the interrupted \(operation.operation) of '\(operation.container)': \(sign.text)",
      hint: "close the app and try again, or add '--force'")
  }
}

extension JournalRecord {
  /// What is said of a unit that could not be taken: why not, and of which it holds, too.
  fileprivate func remarks(on failure: UnitFailure, of unit: [JournalStep]) -> [PathRemark] {
    let path = { (step: JournalStep) in roots[step.root].path.appending(step.path) }
    return unit.enumerated().map { number, step in
      let reason = number == failure.step ? failure.error.reason : PlannedDatabase.brokenReason
      return PathRemark(path: path(step), remark: reason)
    }
  }
}

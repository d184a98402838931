internal import ArchiveStore
internal import DeviceScan
package import PolicyEngine
package import SandboxModel
package import SystemIO

/// The recovery of a device: it finishes or rolls back interrupted operations (docs/journal.md,
/// "Recovery").
package struct Recovery {
  let device: Device
  private let policy: CompiledPolicy
  private let isForced: Bool

  /// Prepares the recovery of a device; with `isForced`, even for running apps.
  package init(_ device: Device, policy: CompiledPolicy, isForced: Bool = false) {
    self.device = device
    self.policy = policy
    self.isForced = isForced
  }

  /// Finishes or rolls back all interrupted operations, oldest first. A blocked recovery does not
  /// affect the others: another operation on the same app is in progress (`busy`), the app is
  /// running, or its volume accepts no more writes (`failed`).
  ///
  /// - Throws: `OperationError` if the journal cannot be read, since the state of every app is
  ///   unknown then.
  package func run() throws(OperationError) -> RecoveryReport {
    var report = RecoveryReport()
    for operation in try InterruptedOperation.all(on: device.root) {
      do throws(OperationError) {
        if let done = try recover(operation) { report.done.append(done) }
      } catch {
        report.blocked.append(RecoveryReport.Blocked(operation: operation, error: error))
      }
    }
    OperationJournal.removeAbandoned(root: device.root)
    return report
  }

  /// Recovers the interrupted operations of a device before another operation changes it, or only
  /// lists them for a preview of that operation.
  ///
  /// - Parameters:
  ///   - again: finds the device again, which the recovery may have changed.
  ///   - notify: receives the report before the device is found again.
  /// - Returns: the device after the recovery with the group members that the policy states, and
  ///   the report.
  /// - Throws: the error of `again`; `OperationError` if the journal cannot be read, except for a
  ///   preview.
  package static func beforeChange(
    of device: Device, policy: CompiledPolicy, isForced: Bool, isPreview: Bool,
    again: () throws -> Device, notify: (RecoveryReport, Device) -> Void
  ) throws -> (device: Device, report: RecoveryReport) {
    let report =
      isPreview
      ? RecoveryReport.pending(on: device)
      : try Recovery(device, policy: policy, isForced: isForced).run()
    notify(report, device)
    let changed = report.done.isEmpty ? device : try again()
    return (changed.stating(groupsOf: policy), report)
  }

  /// Recovers one operation. Returns nil if another process has recovered it since it was read.
  package func recover(
    _ operation: InterruptedOperation
  ) throws(OperationError) -> RecoveryReport.Recovered? {
    let record = operation.record
    let scope = DeviceScope(device, includesHome: record.isWhole, writer: operation.writer)
    if let path = record.firstPath(outside: scope) { throw foreign(operation, path) }
    let locks = try AppLocks(record.subjects, root: device.root)
    defer { withExtendedLifetime(locks) {} }
    guard try operation.isPending(on: device.root) else { return nil }
    if record.state != .preparing { try requireStopped(operation) }
    var outcome = RecoveryReport.Recovered(
      operation: operation, isFinished: operation.canBeFinished)
    do throws(SystemError) {
      try settle(record, within: scope, &outcome)
    } catch {
      let reason = outcome.reason.map { "\($0); the rollback failed: \(error.description)" }
      throw OperationError(
        .failed, code: .recoveryFailed,
        "recover the \(record.operation) of", subject: operation.container,
        reason: reason ?? error.description,
        hint: error.hint ?? "run 'sandboxctl recover' to try again")
    }
    return outcome
  }

  private func foreign(_ operation: InterruptedOperation, _ path: ByteString) -> OperationError {
    // The same journal would be accepted if this user had written it.
    let own = DeviceScope(device, includesHome: operation.record.isWhole)
    let isOfOthers = operation.record.firstPath(outside: own) == nil
    let journal = ControlDirectory.path(ControlDirectory.journal, root: device.root).description
    return OperationError(
      .failed, code: .journalForeign,
      "recover the \(operation.operation) of", subject: operation.container,
      reason: "its journal names '\(path)', which "
        + (isOfOthers
          ? "is outside the device and does not belong to the owner of the journal"
          : "is outside the containers of this device"),
      hint: isOfOthers
        ? "inspect '\(journal)', which the device's user can have written: run 'sandboxctl recover' "
          + "as that user, remove it, or run 'chown root' on the file if a command of root wrote it"
        : "if the device was at another path then, move or mount it there again; otherwise the "
          + "journal may have been copied from another device: inspect '\(journal)', and remove "
          + "it if it is not yours")
  }

  /// Finishes or rolls back an operation, removes what it left, and then its journal.
  private func settle(
    _ record: JournalRecord, within scope: DeviceScope, _ outcome: inout RecoveryReport.Recovered
  ) throws(SystemError) {
    let directory = try ControlDirectory.make(ControlDirectory.journal, root: device.root)
    // With its apps locked, no other process works on the operation; a process that lists the
    // journal holds this lock only for a moment.
    let lock = try FileLock(OperationJournal.lock(record.id), in: directory, waiting: true)
    defer { withExtendedLifetime(lock) {} }
    let opened = OpenedNote(record.id, root: device.root)
    try opened.settle(within: scope)
    switch record.state {
    case .preparing: break
    case .moving: try finish(record, in: directory, &outcome)
    case .returning:
      try Rollback(record, root: device.root).run(&outcome, isResumed: true, in: directory)
    }
    try removeStaged(record)
    removeEmpty(of: record, outcome)
    try opened.settle()
    try directory.remove(OperationJournal.file(record.id))
    try directory.sync()
    // A later operation removes an old lock without a journal.
    try? directory.remove(OperationJournal.lock(record.id))
  }

  /// Applies the remaining steps. If a step of a whole operation cannot be applied, and the reason
  /// is neither lack of space nor a failing device, all applied steps are rolled back.
  private func finish(
    _ record: JournalRecord, in journal: borrowing Directory,
    _ outcome: inout RecoveryReport.Recovered
  ) throws(SystemError) {
    do throws(SystemError) {
      try applySteps(of: record, &outcome)
      try OperationJournal.write(record.settled, in: journal)
    } catch {
      if !record.isWhole || error.endsEverything || error.isLoss { throw error }
      (outcome.isFinished, outcome.reason, outcome.steps) = (false, error.description, 0)
      var record = record
      record.state = .returning
      try OperationJournal.write(record, in: journal)
      try Rollback(record, root: device.root).run(
        &outcome, isResumed: false, in: journal)
    }
  }

  private func applySteps(
    of record: JournalRecord, _ outcome: inout RecoveryReport.Recovered
  ) throws(SystemError) {
    // A program uses no part of a whole operation before all its steps are applied.
    let runner = StepRunner(
      record.roots, OpenedNote(record.id, root: device.root),
      interruptedSince: record.isWhole ? nil : record.time)
    // The steps of a whole operation are rolled back together.
    for item in record.isWhole ? record.steps.singly : record.steps.items {
      do throws(StepRunner.Failure) {
        outcome.steps += try runner.applyAll(item)
      } catch {
        let reason = error.error
        let isHalfApplied = error.remaining != nil
        if isHalfApplied || record.isEnded(by: reason) || reason.isLoss || record.isWhole {
          throw reason
        }
        outcome.failed += record.remarks(on: error, of: Array(item))
      }
    }
    try record.syncRoots()
  }

  private func removeStaged(_ record: JournalRecord) throws(SystemError) {
    let needed = NeededStaging(on: device.root, besides: record.id)
    for path in record.staging {
      do throws(SystemError) {
        try StagingDirectory.removeAbandoned(in: Directory.open(resolved: path), keeping: needed)
      } catch { if !error.isMissing { throw error } }
    }
  }

  /// Removes empty directories of an operation: those in the trash after a rollback, and after a
  /// restore, which may have replaced nothing; and those in the safe harbor of an app.
  private func removeEmpty(of record: JournalRecord, _ outcome: RecoveryReport.Recovered) {
    if !outcome.isFinished || !record.isWhole { Trash(of: device).removeEmpty(record.id) }
    if !record.isWhole { return }
    for subject in record.subjects where subject.components.first == "apps" {
      guard let name = subject.lastComponent.flatMap({ LogicalName(component: $0) }) else {
        continue
      }
      SafeHarbor.removeEmpty(of: name.identifier, root: device.root)
    }
  }

  private func requireStopped(_ operation: InterruptedOperation) throws(OperationError) {
    if isForced { return }
    let subjects = operation.record.subjects
    let options = ScanOptions(destination: .unrestricted)
    let scan = DeviceScan.run(device, policy: policy, options: options) {
      subjects.contains($0.logicalPrefix.subject)
    }
    guard let sign = RunningApps.signs(in: scan).first else { return }
    throw OperationError(
      .failed, code: .appRunning,
      "finish the interrupted \(operation.operation) of", subject: operation.container,
      reason: sign.text,
      hint: "close the app and try again, or add '--force'")
  }
}

extension JournalRecord {
  /// Returns the first path that is not permitted, or nil if all are.
  fileprivate func firstPath(outside scope: DeviceScope) -> ByteString? {
    let forbidden = roots.first { root in
      root.inode == nil ? !scope.permitsMaking(root.path) : !scope.permits(root.path)
    }
    return forbidden?.path ?? staging.first { !scope.permits($0) }
  }

  /// Whether an error prevents all further steps: the volume is full or read-only. A subvolume of
  /// btrfs may be read-only while the directories that the operation works in are not.
  fileprivate func isEnded(by error: SystemError) -> Bool {
    guard error.code == .readOnly else { return error.endsEverything }
    return roots.contains { root in
      (try? Directory.open(resolved: root.path).canBeChanged) == false
    }
  }

  /// Returns the remarks on an item that could not be applied: the reason for the failed step, and
  /// the paths of the other steps.
  fileprivate func remarks(on failure: StepRunner.Failure, of item: [JournalStep]) -> [PathRemark] {
    let path = { (step: JournalStep) in roots[step.root].path.appending(step.path) }
    let cause = failure.isChanged ? JournalStep.changedItemReason : failure.error.reason
    // A file that is moved away and then replaced has two steps.
    var paths: Set<ByteString> = []
    let failed = item[failure.step].path
    return item.enumerated().compactMap { number, step in
      guard number == failure.step || step.path != failed, paths.insert(step.path).inserted else {
        return nil
      }
      let reason = number == failure.step ? cause : JournalStep.brokenItemReason
      return PathRemark(path: path(step), remark: reason)
    }
  }
}

/// The result of the recovery of a device.
package struct RecoveryReport: Sendable {
  /// The operations that were finished or rolled back, oldest first.
  package internal(set) var done: [Recovered] = []
  /// The operations that could be neither finished nor rolled back. They are unchanged and can be
  /// recovered later.
  package internal(set) var blocked: [Blocked] = []
  /// The interrupted operations that a preview leaves unchanged, oldest first.
  package private(set) var pending: [InterruptedOperation] = []
  /// The error of a preview that could not read the journal.
  package private(set) var unreadable: OperationError?

  /// Returns the interrupted operations of a device, without recovering them.
  package static func pending(on device: Device) -> RecoveryReport {
    var report = RecoveryReport()
    do throws(OperationError) {
      report.pending = try InterruptedOperation.all(on: device.root)
    } catch { report.unreadable = error }
    return report
  }

  /// Whether an operation is interrupted, or may be, since the journal cannot be read.
  package var isPending: Bool { unreadable != nil || !pending.isEmpty }

  /// Refuses an operation on apps, groups and directories that a blocked recovery prevents.
  ///
  /// - Throws: the first error of `Blocked.refusal(of:)`.
  package func requireNoneBlocks(_ subjects: [ByteString]) throws(OperationError) {
    if let error = blocked.lazy.compactMap({ $0.refusal(of: subjects) }).first { throw error }
  }

  /// Refuses an operation on an app that a blocked recovery prevents.
  ///
  /// - Throws: the first error of `Blocked.refusal(of:)`.
  package func requireNoneBlocks(_ app: BundleIdentifier) throws(OperationError) {
    try requireNoneBlocks([LogicalContainer.app(app)])
  }

  /// The result for an interrupted operation.
  package struct Recovered: Sendable {
    package let operation: InterruptedOperation
    /// Whether the current container was finished. Otherwise it was rolled back.
    package internal(set) var isFinished: Bool
    /// The number of steps that were left.
    package internal(set) var steps = 0
    /// The entries whose steps could not be applied and that are unchanged, by their paths on the
    /// device.
    package internal(set) var failed: [PathRemark] = []
    /// The reason for a rollback although everything was staged; nil if the rollback was expected.
    package internal(set) var reason: String?
  }

  /// An interrupted operation that currently can be neither finished nor rolled back.
  package struct Blocked: Sendable {
    package let operation: InterruptedOperation
    /// The reason.
    package let error: OperationError

    /// Returns the error that refuses an operation on apps, groups and directories because of this
    /// one, or nil if the operation may continue.
    package func refusal(of subjects: [ByteString]) -> OperationError? {
      if subjects.contains(where: operation.record.subjects.contains) { return error }
      // An app may have no bundle until the recovery, so which groups it shares is unknown.
      guard let group = subjects.first(where: { $0.components.first == "groups" }) else {
        return nil
      }
      return OperationError(
        error.kind, code: error.code, "change", subject: group,
        reason: "other apps may share it: \(error.description)", hint: error.hint)
    }
  }
}

internal import DeviceTransaction
internal import Scenario
internal import SystemIO

extension CaseState {
  /// Performs the action of a step. Returns the failures of expectations.
  func perform(_ action: ScenarioAction) throws -> [ScenarioFailure] {
    switch action {
    case .deliver(let delivery): try deliver(delivery)
    case .write(let writing): try write(writing)
    case .remove(let path): try remove(path)
    case .mark(let marking): try mark(marking)
    case .backup(let backup): try backUp(backup)
    case .update(let wanted): try update(wanted)
    case .rollback(let rollback): try rollBack(rollback)
    case .purge(let wanted): try purge(wanted)
    case .offload(let app): try offload(app)
    case .restore(let wanted): try restore(wanted)
    case .interrupt(let wanted): try interrupt(wanted)
    case .recover: try recover()
    case .moment(let name): try recordMoment(name)
    case .expect(let expectations): return try failures(of: expectations)
    }
    return []
  }

  /// Performs an action in which every change from a given one on fails, as if the process had been
  /// killed there.
  ///
  /// - Throws: `OperationError` if the action ends before.
  private func interrupt(_ wanted: ScenarioAction.Interruption) throws {
    let plan = Faults.Plan(
      endingAt: wanted.count, of: wanted.unit == .call ? Faults.changes : [.sync])
    interruption = plan
    var failure: (any Error)?
    do { _ = try perform(wanted.action) } catch { failure = error }
    interruption = nil
    if !plan.hasFired {
      if let failure { throw failure }
      throw tooLate(wanted, after: plan.count)
    }
    if wanted.recovers { try recover() }
  }

  /// The error of an interruption at a phase or call that the operation does not reach.
  ///
  /// - Parameter count: The number of phases or calls that the operation has.
  private func tooLate(
    _ wanted: ScenarioAction.Interruption, after count: Int
  ) -> OperationError {
    let unit = wanted.unit.rawValue
    let action = "interrupt the step \(wanted.action.kind.rawValue)"
    guard count > 0 else {
      return OperationError(
        .failed, code: .invalidValue, action, reason: "it has no \(unit)s",
        hint: wanted.unit == .call
          ? "it changes nothing here" : "give 'of: call' to count its system calls")
    }
    return OperationError(
      .failed, code: .invalidValue, action,
      reason: "it ends after \(unit) \(count), before \(unit) \(wanted.count)",
      hint: "give a number from 1 to \(count)")
  }

  /// Recovers interrupted operations, as 'sandboxctl recover' and the next operation do.
  private func recover() throws {
    let report = try Recovery(device(), policy: policy, isForced: true).run()
    if let blocked = report.blocked.first { throw blocked.error }
    if let failed = report.done.flatMap(\.failed).first {
      throw OperationError(
        .failed, code: .recoveryFailed, "recover", subject: failed.path, reason: failed.remark)
    }
  }
}

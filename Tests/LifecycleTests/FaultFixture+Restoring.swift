import ArchiveStore
import Restore
import TestSupport
import Testing

/// The result of a restore in which a call failed.
struct RestoreOutcome {
  var report: RestoreReport?
  var error: (any Error)?
}

/// Restores in which each call fails in turn.
extension FaultFixture {
  /// Restores without failures, and expects a complete restore.
  func restore(_ snapshot: StoredSnapshot, _ request: RestoreRequest) throws {
    let reader = try base.repository.beginReading()
    let plan = try RestorePlan.make(snapshot, request, from: reader)
    let report = try RestoreOperation(plan, from: reader, threads: 2).run()
    #expect(report.isComplete, "\(report.failed) \(report.damaged)")
  }

  /// Restores once for each failing call, and has each result checked. Returns the number of
  /// failures that ended the restore or were reported.
  func eachRestore(
    _ kind: FaultKind, _ snapshot: StoredSnapshot, _ request: RestoreRequest,
    _ check: (RestoreOutcome, String) throws -> Void
  ) throws -> Int {
    var failures = 0
    for call in 1...2000 {
      var outcome = RestoreOutcome()
      let isThere = try kind.inject(at: call, storage) {
        do {
          let reader = try repository.beginReading()
          let plan = try RestorePlan.make(snapshot, request, from: reader)
          outcome.report = try RestoreOperation(plan, from: reader, threads: 2).run()
        } catch {
          outcome.error = error
        }
      }
      let what = "\(kind), call \(call)"
      if let error = outcome.error { #expect(tellsWhatAndWhere(error), "\(what): \(error)") }
      if outcome.report?.isComplete != true { failures += 1 }
      try check(outcome, "\(what), \(outcome.error.map { "\($0)" } ?? "reported")")
      if !isThere {
        #expect(outcome.report?.isComplete == true, "\(what)")
        return failures
      }
    }
    Issue.record("\(kind) does not end")
    return failures
  }
}

import ArchiveStore
import Restore
import TestSupport
import Testing

/// The result of a restore in which a call failed.
struct RestoreOutcome {
  var report: RestoreReport?
  var error: (any Error)?
}

/// Restores during which each call fails in turn.
extension FaultFixture {
  /// Restores without failures, and expects a complete restore.
  func restore(_ snapshot: StoredSnapshot, _ request: RestoreRequest) throws {
    let reader = try base.repository.beginReading()
    let plan = try RestorePlan.make(snapshot, request, from: reader)
    let report = try RestoreOperation(plan, from: reader, threads: 2).run()
    #expect(report.isComplete, "\(report.failed) \(report.damaged)")
  }

  /// Restores once for each failing call, or for a sample of them, and calls a check for each
  /// result. Expects at least `fewest` failures, of all calls, that end the restore or are
  /// reported.
  func eachRestore(
    _ kind: FaultKind, _ snapshot: StoredSnapshot, _ request: RestoreRequest,
    fewest: Int, _ check: (RestoreOutcome, String) throws -> Void
  ) throws {
    var failures = 0
    for call in Sampling.steps(kind.sample, "\(kind)").prefix(while: { $0 <= 2000 }) {
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
        let least = Sampling.isWhole ? max(1, fewest) : fewest / (2 * kind.sample)
        #expect(failures >= least, "\(kind): \(failures) in \(call) calls")
        return
      }
    }
    Issue.record("\(kind) does not end")
  }
}

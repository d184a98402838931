internal import SystemIO

/// Checks that a repository conforms to its format and that everything its snapshots need exists
/// and is intact, and reports what is lost.
///
/// Changes nothing and takes no lease. A concurrent backup or prune is not reported as damage: if
/// something is missing and the repository has changed since, the check starts again. It keeps the
/// index, the ids of the trees, and one frame for each worker in memory.
package struct RepositoryCheck: Sendable {
  let repository: Repository
  let reading: CheckReading
  let workers: Int
  let counters: ProgressCounters
  let isStopping: @Sendable () -> Bool

  /// Prepares a check that reads packs with `workers` threads. `isStopping` is called often, on any
  /// thread; if it returns true, the check throws `interrupted`.
  package init(
    _ repository: Repository, reading: CheckReading = .trees, workers: Int,
    counters: ProgressCounters = ProgressCounters(),
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    self.repository = repository
    self.reading = reading
    self.workers = max(1, workers)
    self.counters = counters
    self.isStopping = isStopping
  }

  /// Runs the check.
  ///
  /// - Throws: `StoreError` if the repository cannot be checked at all, or `interrupted`.
  package func run() throws -> CheckResult {
    let start = Host.monotonicSeconds()
    var run = try CheckRun(self)
    for _ in 1..<Self.maximumAttempts where run.hasDamage {
      guard try RepositoryInventory(repository.storage) != run.inventory else { break }
      run = try CheckRun(self)
    }
    return CheckResult(run: run, start: start)
  }

  /// The maximum number of attempts to check a repository that keeps changing.
  private static let maximumAttempts = 3

  func checkNotStopped() throws(StoreError) {
    guard isStopping() else { return }
    throw StoreError(
      .interrupted, "finish the check of", subject: repository.place, reason: "it was interrupted",
      hint: "run it again; '--read-data-subset 1/4' reads a quarter of the data, '2/4' the next")
  }
}

/// The result of a check. The affected paths may be many, and are determined while they are
/// reported.
package struct CheckResult {
  let run: CheckRun
  let start: Double

  /// Passes the findings to `tell`: damaged objects, then the affected paths, then remarks.
  ///
  /// - Throws: `StoreError`, including `interrupted`, and any error of `tell`.
  package func tell(_ tell: (CheckFinding) throws -> Void) throws -> CheckReport {
    var report = run.report
    try run.forEachFinding { finding in
      report.count(finding)
      try tell(finding)
    }
    report.seconds = Host.monotonicSeconds() - start
    return report
  }
}

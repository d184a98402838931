internal import SystemIO

/// Holds a repository against its format and against itself: that everything its snapshots need is
/// there and as it was written, and what is lost where it is not.
///
/// Changes nothing and takes no lease. What a backup or a prune does meanwhile is not called
/// damage: where something is missing and the repository has changed since, it is looked at again.
/// Memory holds the index, the names of the trees, and a frame for each worker.
public struct RepositoryCheck: Sendable {
  let repository: Repository
  let reading: CheckReading
  let workers: Int
  let counters: ProgressCounters
  let isStopping: @Sendable () -> Bool

  /// Prepares a check that reads packs by so many threads. It tells the counters how far that is, and
  /// asks `isStopping` often, on any thread; when that holds, it throws `interrupted`.
  public init(
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

  /// Looks at everything.
  ///
  /// - Throws: `StoreError` where the repository cannot be looked at at all, or `interrupted`.
  public func run() throws -> CheckResult {
    let start = Host.monotonicSeconds()
    var run = try CheckRun(self)
    for _ in 1..<Self.maximumAttempts where run.hasDamage {
      guard try RepositoryInventory(repository.storage) != run.inventory else { break }
      run = try CheckRun(self)
    }
    return CheckResult(run: run, start: start)
  }

  /// How often a repository that changes all the time is looked at.
  private static let maximumAttempts = 3

  func requireGoingOn() throws(StoreError) {
    guard isStopping() else { return }
    throw StoreError(
      .interrupted, "finish the check of", repository.place, "it was interrupted",
      hint: "run it again; '--read-data-subset 1/4' reads a quarter of the data, '2/4' the next")
  }
}

/// What a check found, before it is told: the paths that damage costs may be many, and are looked for
/// while they are told.
public struct CheckResult {
  let run: CheckRun
  let start: Double

  /// Gives what was found: objects that are damaged, then the paths that this costs, then remarks.
  ///
  /// - Throws: `StoreError`, `interrupted` among it, and what `tell` throws.
  public func tell(_ tell: (CheckFinding) throws -> Void) throws -> CheckReport {
    var report = run.report
    try run.forEachFinding { finding in
      report.count(finding)
      try tell(finding)
    }
    report.seconds = Host.monotonicSeconds() - start
    return report
  }
}

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

  /// Prepares a check that reads packs by so many threads.
  public init(_ repository: Repository, reading: CheckReading = .trees, workers: Int) {
    self.repository = repository
    self.reading = reading
    self.workers = max(1, workers)
  }

  /// Checks, and gives what is found: objects that are damaged, then the paths that this costs, then
  /// remarks.
  ///
  /// - Throws: `StoreError` where the repository cannot be looked at at all, and what `tell` throws.
  public func run(_ tell: (CheckFinding) throws -> Void) throws -> CheckReport {
    let start = Host.monotonicSeconds()
    var run = try CheckRun(self)
    for _ in 1..<Self.maximumAttempts where run.hasDamage {
      guard try RepositoryInventory(repository.storage) != run.inventory else { break }
      run = try CheckRun(self)
    }
    var report = run.report
    try run.forEachFinding { finding in
      report.count(finding)
      try tell(finding)
    }
    report.seconds = Host.monotonicSeconds() - start
    return report
  }

  /// How often a repository that changes all the time is looked at.
  private static let maximumAttempts = 3
}

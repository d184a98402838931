package import ArchiveStore
internal import DeviceScan
package import DeviceTransaction
package import SandboxModel
package import SystemIO

/// The backup of one device to a repository: takes the source's lock, scans the source with the
/// marks that earlier scans found, and stores what the policy includes.
package struct DeviceBackup {
  private let repository: Repository
  /// The repository's directory, which is never part of a backup; nil if it is on another host.
  private let storage: FileIdentity?
  private let index: IndexCache?

  /// The result of a backup.
  package struct Outcome {
    package let plan: BackupPlan
    package let report: BackupReport
    /// The interrupted operations on the device.
    package let interrupted: RecoveryReport

    /// Whether the snapshot has everything that the policy includes, and no interrupted operation
    /// is pending on the device.
    package var isComplete: Bool { report.isComplete && !interrupted.isPending }

    /// Returns the snapshot for an operation that needs it.
    ///
    /// - Parameter action: the operation, as the words after "cannot".
    /// - Throws: `failed` if none was written.
    package func requireSnapshot(to action: String) throws(OperationError) -> StoredSnapshot {
      if let stored = report.snapshot { return stored }
      throw OperationError(
        .failed, code: .nothingReadable, action, subject: plan.device.root,
        reason: "it has nothing to store")
    }
  }

  /// Prepares a backup: begins to verify the copies of the repository's index in the host's cache
  /// directory, so that they are verified by the end of the scan.
  package init(to repository: Repository, storage: FileIdentity?, cache: ByteString?) {
    self.repository = repository
    self.storage = storage
    index = cache.map { repository.indexCache(in: $0) }
    index?.prefetchVerification()
  }

  /// Backs up a source.
  ///
  /// - Parameters:
  ///   - request: the options. Its scope, lock and index, and whether the device is locked, are
  ///     determined here.
  ///   - seconds: the time to wait while another run backs up the same source.
  ///   - again: finds the device again after waiting, since it may have changed.
  ///   - didFindRisk: receives a warning about the work ahead, before any data is read.
  /// - Throws: the errors of `SourceLock.acquire`, `again`, `BackupSource.plan` and
  ///   `BackupOperation.run`.
  package func run(
    _ source: BackupSource, _ request: BackupRequest, waiting seconds: Double,
    again: () throws -> Device, didFindRisk: @escaping (String) -> Void = { _ in }
  ) throws -> Outcome {
    var (source, request) = (source, request)
    let lock = try SourceLock.acquire(
      for: source.device, in: repository, cache: request.cache, waiting: seconds,
      isStopping: request.isStopping)
    if lock?.hasWaited == true { source.device = try again() }
    let own = BackupSource.ownDirectories(storage: storage, cache: request.cache)
    let marks = SourceMarks(
      of: source.device, in: repository, cache: request.cache, program: request.program,
      under: lock)
    let plan: BackupPlan
    do {
      let (scan, part) = try source.scan(
        excluding: own, knowing: marks?.markCache, isStopping: request.isStopping)
      plan = BackupPlan.make(scan)
      if let found = scan.marks { marks?.store(found, isPart: part.isPart) }
      (request.scope, request.isPart) = (part.scope, part.isPart)
    }
    (request.lock, request.index) = (lock, index)
    request.isLocked = source.isLocked
    var operation = BackupOperation(plan, to: repository, request)
    operation.didFindRisk = didFindRisk
    let report = try operation.run()
    return Outcome(
      plan: plan, report: report,
      interrupted: .pending(on: plan.device))
  }
}

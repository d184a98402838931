internal import ArchiveStore
internal import Backup
internal import SandboxModel
internal import SystemIO

/// Backs up devices, one after another, to one repository.
struct DeviceBackup {
  let command: BackupCommand
  let repository: Repository
  /// The repository's directory, which is never part of a backup.
  let storage: FileIdentity
  let jobs: Int?

  /// The result for one device.
  struct Result {
    let root: ByteString
    /// The plan and the report; nil if the backup failed.
    let done: (plan: BackupPlan, report: BackupReport)?
    let status: ExitStatus

    /// Whether the device and a directory are on the same disk, as far as the system distinguishes
    /// disks.
    func isOnDisk(_ directory: FileIdentity) -> Bool {
      (try? Directory.open(path: root).status().identity.device) == directory.device
    }
  }

  /// Backs up a device. After waiting for another run, `again` finds the device again.
  func run(
    _ found: Device, again: () throws -> Device, _ console: Console
  ) throws -> Result {
    // Verifies the copies of the index during the scan.
    let index = repository.hostIndexCache
    index?.prefetchVerification()
    let policy = try command.compile(for: found, console)
    let counters = ProgressCounters()
    let (plan, report) = try command.progress.run(counters, command.output) { isStopping in
      let lock = try SourceLock.take(
        for: found, in: repository, cache: Host.cacheDirectory,
        waiting: command.lockWait?.seconds ?? 0, isStopping: isStopping)
      let device = lock?.hasWaited == true ? try again() : found
      let own = Self.ownDirectories(storage: storage)
      let marks = SourceMarks(
        of: device, in: repository, cache: Host.cacheDirectory, program: Version.text, under: lock)
      let (plan, found) = try command.plan(
        device, policy: policy, excluding: own, knowing: marks?.markCache, isStopping: isStopping)
      let selection = try command.part.selection(of: plan.device)
      if let found { marks?.keep(found, isPart: selection.isPart) }
      var request = request(
        for: selection, under: lock, counters: counters, isStopping: isStopping)
      request.index = index
      return (plan, try BackupOperation(plan, to: repository, request).run())
    }
    let wasInterrupted = console.warn(ofInterruptedOn: plan.device)
    let status = wasInterrupted ? .doneInPart : status(of: report)
    return Result(root: plan.device.root, done: (plan, report), status: status)
  }

  private func request(
    for selection: BackupCommand.AppOptions.Selection, under lock: SourceLock?,
    counters: ProgressCounters,
    isStopping: @escaping @Sendable () -> Bool
  ) -> BackupRequest {
    var request = BackupRequest(
      reason: command.scheduled ? .scheduled : .manual, tags: command.tags, program: Version.text,
      cache: Host.cacheDirectory, keepFree: command.keepFree.map { UInt64($0.bytes) },
      skipsUnchanged: command.failIfUnchanged, isStopping: isStopping, counters: counters)
    if let jobs { request.workers = jobs }
    if let timeout = command.sqliteTimeout { request.databaseTimeout = timeout.seconds }
    request.lock = lock
    request.checksSpace = !command.noSpaceCheck
    (request.scope, request.isPart) = (selection.scope, selection.isPart)
    request.verifiesBundles = command.part.verifyBundles
    return request
  }

  private func status(of report: BackupReport) -> ExitStatus {
    if !report.isComplete || command.strict && !report.warnings.isEmpty { return .doneInPart }
    return report.isUnchanged ? .nothingToDo : .done
  }

  /// Returns the repository's directory and the program's cache directory, which are never part of
  /// a backup.
  static func ownDirectories(storage: FileIdentity?) -> Set<FileIdentity> {
    let cache = Host.cacheDirectory?.appending("sandboxctl")
    let identity = cache.flatMap { try? Directory.open(path: $0).status().identity }
    return Set([storage, identity].compactMap(\.self))
  }
}

package import ArchiveStore
package import DeviceScan
package import DeviceTransaction
internal import SandboxModel
package import SystemIO

/// Carries out the migration of one app.
///
/// The app must be stopped on both sides. The target's data is first saved in a snapshot (reason
/// pre-restore). Then all entries are copied into a staging directory next to their destinations
/// and synced, and put in place by a few renames under the journal, all or none (`StagedExchange`).
/// The source is only read, and nothing in the target is replaced: if an entry appears at a
/// destination meanwhile, the operation rolls back.
///
/// A crash during the copying leaves the target unchanged, with a staging directory that the next
/// recovery removes; after a later crash the recovery finishes the renames.
package struct MigrationOperation {
  /// The conditions of a migration.
  package struct Options: Sendable {
    /// Whether the app may be running.
    package var isForced = false
    /// Whether a snapshot of the target's data is made first.
    package var savesFirst = true
    /// The time at which the operation begins.
    package var time = Host.now()

    /// Creates the default conditions.
    package init() {}
  }

  private let migration: AppMigration
  private let target: MigrationTarget
  private let scan: DeviceScan
  private let options: Options
  private let saving: SafetySnapshotMaker?
  private let counters: ProgressCounters
  private let isStopping: @Sendable () -> Bool

  /// Prepares an operation.
  ///
  /// - Parameters:
  ///   - scan: The scan of the target.
  ///   - saving: Makes the snapshot; without it, a migration that makes a snapshot is refused.
  package init(
    _ migration: AppMigration, to target: MigrationTarget, scanned scan: DeviceScan,
    _ options: Options = Options(), saving: SafetySnapshotMaker?,
    counters: ProgressCounters = ProgressCounters(),
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    self.migration = migration
    self.target = target
    self.scan = scan
    self.options = options
    self.saving = saving
    self.counters = counters
    self.isStopping = isStopping
  }

  private var app: ByteString { migration.route.to.app }

  /// Copies the entries and puts them in place.
  ///
  /// - Throws: `OperationError`: `failed` if the app is running, the volume has no room, the
  ///   snapshot could not be made, or a system call failed; `busy`; `interrupted`. The target is
  ///   unchanged unless the error says that a recovery is needed.
  package func run() throws -> MigrationReport {
    let start = Host.monotonicSeconds()
    var report = MigrationReport()
    if migration.isIdle { return report }
    if scan.isInterrupted {
      throw OperationError(
        .interrupted, "the migration was interrupted: the target is unchanged", hint: "run it again"
      )
    }
    try requireStopped()
    try requireRoom()
    let subjects = [target.subject]
    let journal = try OperationJournal(
      JournalRecord(
        operation: "migrate", time: options.time, subjects: subjects,
        containers: [target.subject], isWhole: true), root: target.device.root)
    let exchange = StagedExchange(
      on: target.device, under: journal,
      StagedExchange.Wording(verb: "migrate", noun: "migration", subject: app))
    do {
      report.saved = try save()
      try stage(in: exchange, &report)
    } catch {
      // Nothing was moved. Staged entries are removed here or by 'recover'.
      exchange.abandon()
      try? journal.end()
      if let error = error as? SystemError { throw OperationError(error) }
      throw error
    }
    report.exchangeSeconds = try exchange.run()
    try exchange.finish()
    do throws(SystemError) { try journal.end() } catch { throw OperationError(error) }
    withExtendedLifetime(journal) {
      Trash(of: target.device).removeOld(of: subjects, now: options.time)
    }
    report.seconds = Host.monotonicSeconds() - start
    return report
  }

  // MARK: - Before

  private func requireStopped() throws(OperationError) {
    if options.isForced { return }
    let signs =
      target.signsOfUse(in: scan, of: migration) + migration.signsOfUseInSource
    guard let first = signs.first else { return try migration.requireSourceWithoutOperations() }
    let more = signs.count > 1 ? ", and \(signs.count - 1) more" : ""
    throw OperationError(
      .failed, code: .appRunning, "migrate", subject: app, reason: "\(first.text)\(more)",
      hint: "close the app and try again, or add '--force'")
  }

  /// Refuses a migration for which the volume lacks room, unless copies may share blocks.
  private func requireRoom() throws(OperationError) {
    let needed = migration.plan.neededRoom
    let room: UInt64
    let mayShare: Bool
    do throws(SystemError) {
      let directory = try Directory.open(resolved: basePath)
      room = try directory.space().available
      mayShare = try directory.mayShareBlocks()
    } catch { throw OperationError(error) }
    if mayShare || room >= needed { return }
    throw OperationError(
      .failed, code: .noSpace, "migrate", subject: app,
      reason: "it needs \(ByteCount.text(needed)), and the volume of '\(basePath)' has "
        + "\(ByteCount.text(room)) left",
      hint: "'sandboxctl purge --query' shows what can be freed")
  }

  /// Saves the containers to which entries are added.
  private func save() throws -> StoredSnapshot? {
    guard options.savesFirst, !scan.containers.isEmpty else { return nil }
    guard let saving else {
      throw OperationError(
        .failed, code: .noRepositoryForSnapshot, "migrate", subject: app,
        reason: "there is no repository for the snapshot of the target's data",
        hint: "name one with '--repo', or skip the snapshot with '--no-snapshot'")
    }
    let apps = Set(scan.containers.compactMap { $0.container.owner?.bytes.utf8 })
    let (bytes, device) = (migration.plan.neededRoom, volume)
    return try saving.save(
      scan, reason: .preRestore, scope: .apps(apps.sorted()),
      hint: "'--no-snapshot' continues without a snapshot",
      room: { $0 == device ? bytes : 0 })
  }

  // MARK: - Staging

  private var basePath: ByteString { migration.route.to.home.appending(target.base) }

  /// The device number of the volume; nil if it cannot be read.
  private var volume: UInt64? {
    (try? Directory.open(resolved: basePath).status())?.identity.device
  }

  private func stage(in exchange: StagedExchange, _ report: inout MigrationReport) throws {
    try exchange.prepare(in: [basePath])
    let area = try exchange.area(at: basePath)
    try requireSameVolume(as: area.directory.status())
    let (source, home) = (
      try MigrationHome(migration.route.from), try MigrationHome(migration.route.to)
    )
    let (base, owner) = (target.base, try owner())
    // Directories above the copies that correspond to no entry of the source get the owner from it.
    if let owner {
      try area.staging.tree.setOwner(user: owner.user, group: owner.group)
    }
    let copier = MigrationCopier(
      of: migration, from: source, into: try area.staging.tree.duplicate(),
      owner: owner, counters: counters, isStopping: isStopping,
      stagedPath: { home.real($0).relative(to: base) })
    counters.expect(files: migration.plan.files, bytes: migration.plan.bytes)
    try copier.copy(migration.plan.moves)
    report.remarks = copier.remarks
    report.failed = copier.failed
    try exchange.sync()
    let root = try exchange.root(area.directory)
    let staged = try exchange.root(area.staging.tree)
    for destination in target.destinations.map({ $0.relative(to: base) }) {
      guard try Self.isStaged(destination, in: area.staging.tree) else { continue }
      exchange.add(JournalStep(path: destination, root: root, source: staged))
    }
  }

  /// Whether a destination has a copy: otherwise none of its entries could be copied. A step
  /// without one would seem applied, and its rollback would remove an entry that another program
  /// has put there.
  private static func isStaged(
    _ destination: ByteString, in tree: borrowing Directory
  ) throws(SystemError) -> Bool {
    do throws(SystemError) {
      let above = try MigrationSurvey.open(destination.parent, in: tree)
      return try above.statusIfPresent(destination.lastComponent ?? "") != nil
    } catch {
      if error.isMissing { return false }
      throw error
    }
  }

  /// Returns the owner of new entries if root migrates: that of the target's home directory.
  private func owner() throws(SystemError) -> (user: UInt32, group: UInt32)? {
    guard Host.userID == 0 else { return nil }
    let status = try Directory.open(resolved: migration.route.to.home).status()
    return (status.user, status.group)
  }

  /// Refuses destinations on a volume other than that of the staging directory: entries cannot be
  /// renamed to it.
  private func requireSameVolume(as base: FileStatus) throws {
    let home = migration.route.to.home
    for above in Set(target.destinations.map(\.parent)).sorted() {
      let status = try Directory.open(resolved: home.appending(above)).status()
      guard status.identity.device != base.identity.device else { continue }
      throw OperationError(
        .failed, code: .otherVolume, "migrate", subject: app,
        reason: "'\(home.appending(above))' is on another volume than '\(basePath)'",
        hint: "unmount it or move it, and migrate again")
    }
  }
}

/// The result of the migration of one app.
package struct MigrationReport: Sendable {
  /// The snapshot of the target's previous data.
  package internal(set) var saved: StoredSnapshot?
  /// The remarks on single entries, by their destinations relative to the home directory.
  package internal(set) var remarks: [PathRemark] = []
  /// The destinations of entries that could not be copied.
  package internal(set) var failed: Set<ByteString> = []
  /// The duration of the renames in seconds.
  package internal(set) var exchangeSeconds = 0.0
  /// The duration in seconds.
  package internal(set) var seconds = 0.0

  /// Creates the report of a migration with nothing to copy.
  init() {}

  /// Whether every entry was copied exactly.
  package var isComplete: Bool { remarks.isEmpty }
}

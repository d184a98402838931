public import ArchiveStore
internal import SandboxModel
internal import SystemIO

/// Carries out a `DeviceRestorePlan`.
///
/// Before anything is written it is seen whether there is room and whether an app runs; then what is
/// there is saved in a snapshot of its own (reason pre-restore); then the containers come back one
/// after another, each as a `RestoreOperation` under one journal: one that is made appears as a whole,
/// into one that is there each file comes by one rename, and what gives way is kept in the trash. After
/// an interruption the container in hand is finished or taken back (`Recovery`), and the same command
/// goes on: what has its place is found there and left.
public struct DeviceRestoreOperation {
  private let plan: DeviceRestorePlan
  private let repository: Repository
  private let reader: RepositoryReader
  private let saving: BackupRequest
  private let counters: ProgressCounters
  private let isStopping: @Sendable () -> Bool

  /// Prepares an operation.
  ///
  /// - Parameter saving: how the snapshot of what is there is made.
  public init(
    _ plan: DeviceRestorePlan, _ repository: Repository, from reader: RepositoryReader,
    saving: BackupRequest, counters: ProgressCounters = ProgressCounters(),
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    self.plan = plan
    self.repository = repository
    self.reader = reader
    self.saving = saving
    self.counters = counters
    self.isStopping = isStopping
  }

  /// Restores, and tells what was done.
  ///
  /// - Throws: `LifecycleError`: `failed` where an app runs, a volume has no room, or what is there
  ///   could not be saved; `busy`, `interrupted`; `StoreError`.
  public func run() throws -> DeviceRestoreReport {
    let start = Host.monotonicSeconds()
    try requireStopped()
    let room = VolumeNeeds(plan, from: reader)
    try room.require()
    let (root, subjects) = (plan.request.device.root, plan.subjects)
    let journal = try OperationJournal(
      JournalRecord(
        operation: "restore", time: plan.request.time, subjects: subjects,
        containers: plan.parts.map(\.path)), root: root)
    var report = DeviceRestoreReport(lost: plan.lost)
    do {
      report.saved = try save(leaving: room)
      try restoreParts(under: journal, &report)
    } catch {
      // All that was staged is removed; where the journal cannot be, 'recover' does so.
      if !journal.isUnstable { try? journal.end() }
      throw error
    }
    do throws(SystemError) { try journal.end() } catch { throw LifecycleError(error) }
    Trash(of: plan.request.device).removeOld(of: subjects, now: plan.request.time)
    report.seconds = Host.monotonicSeconds() - start
    return report
  }

  private func restoreParts(
    under journal: OperationJournal, _ report: inout DeviceRestoreReport
  ) throws {
    for (number, part) in plan.parts.enumerated() {
      let journaled = JournaledPart(
        journal, number, part.path, root: plan.request.device.root)
      do {
        report.parts.append((part, try restore(part, journaled)))
        if journaled.hasTrash { report.trash = journal.record.id }
      } catch let error as LifecycleError {
        throw error.after(report.parts.map(\.part))
      }
    }
  }

  // MARK: - Before

  private func requireStopped() throws(LifecycleError) {
    if plan.request.isForced { return }
    let signs = plan.runningProcesses()
    guard let first = signs.first else { return }
    let more = signs.count > 1 ? ", and \(signs.count - 1) more" : ""
    throw LifecycleError(
      .failed, "cannot restore into '\(plan.request.device.root)': \(first.text)\(more)",
      hint: "close the app and try again, or add '--force'")
  }

  /// Saves the containers that something is merged into; where the repository shares a volume with the
  /// device what comes back has to find room beside it.
  private func save(leaving room: VolumeNeeds) throws -> StoredSnapshot? {
    let merged = plan.mergedContainers
    guard plan.request.savesFirst, !merged.isEmpty else { return nil }
    var scan = plan.present
    if scan.options.only != nil {
      // A snapshot needs a scan of the whole directory, which is made only if something is replaced.
      if !plan.parts.contains(where: \.plan.displaces) { return nil }
      scan = scan.rescan(merged)
    }
    scan.containers.removeAll { !merged.contains($0.container.logicalPrefix) }
    var saving = saving
    if let volume = try repository.storage.space()?.device {
      saving.neededAfterwards = room.bytes(on: volume)
    }
    return try SafetySnapshot(
      in: repository, saving, hint: "'--no-snapshot' restores without saving it"
    ).save(scan, reason: .preRestore, scope: scope(of: scan))
  }

  private func scope(of scan: DeviceScan) -> Scope {
    let apps = Set(scan.containers.compactMap { $0.container.owner?.bytes.utf8 })
    return scan.device.layout == .folder ? .device : .apps(apps.sorted())
  }

  // MARK: - The restore

  private func restore(
    _ part: PlannedPart, _ journaled: JournaledPart
  ) throws -> RestoreReport {
    if part.fate == .harbor {
      let harbor = SafeHarbor.path(for: "apps", root: plan.request.device.root)
      do throws(SystemError) {
        _ = try Directory.make(resolved: harbor, permissions: 0o700)
        try ControlOwner.give(harbor)
      } catch { throw LifecycleError(error) }
    }
    let report = try RestoreOperation(
      part.plan, from: reader, counters: counters, part: journaled, isStopping: isStopping
    ).run()
    if part.fate == .make { try nameRevision(part) }
    return report
  }

  /// Says of a snap's revision that was made that it is the one in use, where nothing says which is.
  private func nameRevision(_ part: PlannedPart) throws {
    guard case .revision = try? LogicalPath(part.path).place?.container,
      let name = part.target.lastComponent
    else { return }
    let above = part.target.components.dropLast().map(\.bytes)
    do throws(SystemError) {
      let directory = try Directory.open(
        path: ByteString("/").appending(ByteString(above.joined(separator: [UInt8(ascii: "/")]))))
      if try directory.statusIfPresent("current") == nil {
        try directory.createLink("current", to: name)
      }
    } catch { throw LifecycleError(error) }
  }
}

extension LifecycleError {
  /// The same error with what was restored before it.
  fileprivate func after(_ parts: [PlannedPart]) -> LifecycleError {
    if parts.isEmpty { return self }
    let done = parts.map { "'\($0.path)'" }.joined(separator: ", ")
    return LifecycleError(kind, "\(description); restored before that: \(done)", hint: hint)
  }
}

/// What a restore into a device did.
public struct DeviceRestoreReport: Sendable {
  /// What was done container by container.
  public internal(set) var parts: [(part: PlannedPart, report: RestoreReport)] = []
  /// Containers of which nothing can be read, by their logical paths: they stayed as they were.
  public let lost: [PathRemark]
  /// The snapshot of what was there.
  public internal(set) var saved: StoredSnapshot?
  /// The operation whose directory in the trash has what gave way; nothing where nothing did.
  public internal(set) var trash: String?
  /// How long it took, in seconds.
  public internal(set) var seconds = 0.0

  init(lost: [PathRemark]) { self.lost = lost }

  /// What the repository no longer holds whole, by logical paths.
  public var damaged: [PathRemark] { lost + remarks(\.damaged) }

  /// What the containers' reports say together.
  public func total(_ count: (RestoreReport) -> RestoreTotals) -> RestoreTotals {
    parts.reduce(into: RestoreTotals()) { $0.add(count($1.report)) }
  }

  /// Remarks of all containers, by logical paths.
  public func remarks(_ list: (RestoreReport) -> [PathRemark]) -> [PathRemark] {
    parts.flatMap { part, report in
      list(report).map { PathRemark(path: part.logical($0.path), remark: $0.remark) }
    }
  }
}

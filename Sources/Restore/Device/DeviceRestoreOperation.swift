package import ArchiveStore
internal import DeviceScan
package import DeviceTransaction
internal import SandboxModel
package import SystemIO

/// Carries out a `DeviceRestorePlan`.
///
/// First it checks that the volumes have room and that no app is running, and saves the existing
/// data in a snapshot (reason pre-restore). Then it restores the containers one after another, each
/// with a `RestoreOperation` under one journal: a new container appears as a whole; into an
/// existing one each file is moved by one rename, and replaced files are kept in the trash. After
/// an interruption the current container is finished or rolled back (`Recovery`), and the same
/// command continues: it finds and keeps entries that are already restored.
package struct DeviceRestoreOperation {
  /// The result of a restore into a device.
  package struct Report: Sendable {
    /// The results by container.
    package internal(set) var parts: [(part: PlannedPart, report: RestoreReport)] = []
    /// Unreadable containers by their logical paths; they are unchanged.
    package let lost: [PathRemark]
    private let isLostByDamage: Bool
    /// The snapshot of the previous data.
    package internal(set) var saved: StoredSnapshot?
    /// The ID of the trash item with the replaced entries; nil if nothing was replaced.
    package internal(set) var trash: String?
    /// The duration in seconds.
    package internal(set) var seconds = 0.0

    init(_ plan: DeviceRestorePlan) {
      (lost, isLostByDamage) = (plan.lost, plan.isLostByDamage)
    }

    /// The data that the repository no longer holds completely, by logical paths.
    package var damaged: [PathRemark] { lost + remarks(\.damaged) }

    /// Whether the repository is damaged: not all of this data needs an older key.
    package var isDamaged: Bool { isLostByDamage || parts.contains { $0.report.isDamaged } }

    /// The entries whose metadata the file systems of the containers do not keep.
    package var unkept: [UnkeptMetadata] {
      UnkeptMetadata.merging(parts.compactMap(\.report.unkept))
    }

    /// Returns the sum of a count over all containers.
    package func total(_ count: (RestoreReport) -> RestoreTotals) -> RestoreTotals {
      parts.reduce(into: RestoreTotals()) { $0.add(count($1.report)) }
    }

    /// Returns the remarks of all containers, by logical paths.
    package func remarks(_ list: (RestoreReport) -> [PathRemark]) -> [PathRemark] {
      parts.flatMap { part, report in
        list(report).map { PathRemark(path: part.logical($0.path), remark: $0.remark) }
      }
    }

    /// The entries of all containers that were kept under another name, by logical paths.
    package var setAside: [SetAsideEntry] {
      parts.flatMap { part, report in
        report.setAside.map { entry in
          SetAsideEntry(
            path: part.logical(entry.path), keptPath: entry.keptPath,
            isDirectory: entry.isDirectory)
        }
      }
    }
  }

  private let plan: DeviceRestorePlan
  private let reader: RepositoryReader
  private let saving: SafetySnapshotMaker
  private let counters: ProgressCounters
  private let isStopping: @Sendable () -> Bool

  /// Creates an operation.
  ///
  /// - Parameter saving: makes the snapshot of the existing data.
  package init(
    _ plan: DeviceRestorePlan, from reader: RepositoryReader, saving: SafetySnapshotMaker,
    counters: ProgressCounters = ProgressCounters(),
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    self.plan = plan
    self.reader = reader
    self.saving = saving
    self.counters = counters
    self.isStopping = isStopping
  }

  /// Restores, and returns a report.
  ///
  /// - Throws: `OperationError`: `failed` if an app is running, a volume has no room, or the
  ///   existing data could not be saved; `busy`, `interrupted`; `StoreError`.
  package func run() throws -> Report {
    let start = Host.monotonicSeconds()
    try requireStopped()
    // A journal has at least one container.
    if plan.parts.isEmpty { return Report(plan) }
    let room = VolumeNeeds(of: plan.parts.map(\.plan), from: reader)
    try room.require()
    let (root, subjects) = (plan.request.device.root, plan.subjects)
    let journal = try OperationJournal(
      JournalRecord(
        operation: "restore", time: plan.request.time, subjects: subjects,
        containers: plan.parts.map(\.path)), root: root)
    var report = Report(plan)
    do {
      report.saved = try save(leaving: room)
      try restoreParts(under: journal, &report)
    } catch {
      // Staged entries have been removed; if the journal cannot be removed, 'recover' does it.
      if !journal.isUnstable {
        Trash(of: plan.request.device).removeEmpty(journal.record.id)
        try? journal.end()
      }
      throw error
    }
    do throws(SystemError) { try journal.end() } catch { throw OperationError(error) }
    let trash = Trash(of: plan.request.device)
    if let id = report.trash, trash.removeEmpty(id) { report.trash = nil }
    // With the locks held: a rollback could be about to use it.
    withExtendedLifetime(journal) { trash.removeOld(of: subjects, now: plan.request.time) }
    report.seconds = Host.monotonicSeconds() - start
    return report
  }

  private func restoreParts(
    under journal: OperationJournal, _ report: inout Report
  ) throws {
    for (number, part) in plan.parts.enumerated() {
      let journaled = RestoreOperation.JournaledPart(
        journal, number: number, container: part.path, root: plan.request.device.root,
        requireStopped: requireStopped)
      do {
        report.parts.append((part, try restore(part, journaled)))
        if journaled.hasTrash { report.trash = journal.record.id }
      } catch let error as OperationError {
        throw OperationError.naming(
          report.setAside, in: error.after(report.parts.map(\.part)))
      }
    }
  }

  // MARK: - Before

  private func requireStopped() throws(OperationError) {
    if plan.request.isForced { return }
    let signs = plan.runningProcesses()
    guard let first = signs.first else { return }
    let more = signs.count > 1 ? ", and \(signs.count - 1) more" : ""
    throw OperationError(
      .failed, code: .appRunning,
      "restore into", subject: plan.request.device.root,
      reason: "\(first.text)\(more)",
      hint: "close the app and try again, or add '--force'")
  }

  /// Saves the containers that are merged into.
  private func save(leaving room: VolumeNeeds) throws -> StoredSnapshot? {
    let merged = plan.mergedContainers
    guard plan.request.savesFirst, !merged.isEmpty else { return nil }
    var scan = plan.present
    if scan.options.only != nil {
      // A snapshot needs a scan of the whole container, which is made only if an entry is replaced.
      if !plan.parts.contains(where: \.plan.displaces) { return nil }
      scan = scan.rescan(merged)
    }
    scan.containers.removeAll { !merged.contains($0.container.logicalPrefix) }
    return try saving.save(
      scan, reason: .preRestore, scope: scope(of: scan),
      hint: "'--no-snapshot' restores without saving it", room: room.bytes(on:))
  }

  private func scope(of scan: DeviceScan) -> Scope {
    let apps = Set(scan.containers.compactMap { $0.container.owner?.bytes.utf8 })
    return scan.device.layout == .folder ? .device : .apps(apps.sorted())
  }

  // MARK: - The restore

  private func restore(
    _ part: PlannedPart, _ journaled: RestoreOperation.JournaledPart
  ) throws -> RestoreReport {
    if part.action == .harbor {
      let harbor = SafeHarbor.path(for: "apps", root: plan.request.device.root)
      do throws(SystemError) {
        _ = try Directory.makeInherited(resolved: harbor)
      } catch { throw OperationError(error) }
    }
    let report = try RestoreOperation(
      part.plan, from: reader, counters: counters, part: journaled, isStopping: isStopping
    ).run()
    if part.action == .make { try nameRevision(part) }
    return report
  }

  /// Makes a new snap revision the current one if no revision is.
  private func nameRevision(_ part: PlannedPart) throws {
    guard case .revision = try? LogicalPath(part.path).location?.container,
      let name = part.target.lastComponent
    else { return }
    do throws(SystemError) {
      let directory = try Directory.open(resolved: part.target.parent)
      if try directory.statusIfPresent("current") == nil {
        try directory.createLink("current", to: name)
      }
    } catch { throw OperationError(error) }
  }
}

extension OperationError {
  /// Returns the error with the parts that were restored before it.
  fileprivate func after(_ parts: [PlannedPart]) -> OperationError {
    if parts.isEmpty { return self }
    let done = parts.map { "'\($0.path)'" }.joined(separator: ", ")
    return adding(remark: "restored before that: \(done)")
  }
}

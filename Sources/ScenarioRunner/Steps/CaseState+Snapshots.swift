internal import ArchiveStore
internal import Backup
internal import DeviceScan
internal import DeviceTransaction
internal import PolicyEngine
internal import Purge
internal import Restore
internal import SandboxModel
internal import Scenario
internal import SystemIO

/// Backups, restores and purges.
extension CaseState {
  /// Backs up the data that this program keeps, or the data that the platform itself backs up.
  func backUp(_ wanted: ScenarioAction.Backup) throws {
    if let name = wanted.name { try recordMoment(name) }
    let repository = try repository()
    let backup = DeviceBackup(
      to: repository, storage: try repository.storage.directoryIdentity(), cache: cache)
    var source = BackupSource(try copy.find(), policy: policy, for: DeviceFacts.destination)
    source.view = wanted.view
    source.workers = 1
    let outcome = try carryOut {
      try backup.run(source, backupRequest, waiting: 0, again: copy.find)
    }
    if interruption != nil { return }
    if let missing = outcome.report.unreadable.first {
      throw OperationError(
        .failed, "back up", subject: missing.path, reason: missing.remark)
    }
    lastSnapshot = outcome.report.snapshot
    if let name = wanted.name { snapshots[name] = outcome.report.snapshot }
  }

  /// Restores a snapshot in place, or to a new device, which is then the current one.
  func restore(_ wanted: ScenarioAction.Restore) throws {
    guard let stored = wanted.snapshot.map({ snapshots[$0] }) ?? lastSnapshot else {
      throw OperationError(
        .failed, code: .snapshotNotFound, "restore",
        reason: wanted.snapshot.map { "no backup named '\($0)' was made" } ?? "no backup was made",
        hint: "add a step 'backup' before")
    }
    let repository = try repository()
    let reader = try repository.beginReading(cache: repository.indexCache(in: cache))
    let isNew = wanted.target == .newDevice
    let apps = try wanted.app.map { [try app($0).description] } ?? []
    if isNew { try copy.makeNew() }
    // In place means the device that was backed up; a device created later is a different target.
    let isOwn = !isNew && stored.snapshot.device.root == copy.root
    let preparation = try DeviceRestorePreparation(
      of: stored, to: isOwn ? nil : copy.root, from: reader,
      protecting: try repository.storage.protectedDirectories(),
      savingTo: DeviceFacts.destination, isPreview: false)
    try preparation.withRoot {
      let (plan, recovery) = try preparation.plan(
        isForced: true, compile: { _ in policy }, notify: { _, _ in },
        adapt: { request in
          request.apps = apps
          request.savesFirst = false
          request.isStopping = isStopping
        })
      try recovery.requireNoneBlocks(plan.subjects)
      let operation = DeviceRestoreOperation(
        plan, from: reader, saving: SafetySnapshotMaker(backupRequest, in: repository),
        isStopping: isStopping)
      let report = try carryOut { try operation.run() }
      if interruption != nil { return }
      let remarks = report.damaged + report.remarks(\.failed) + preparation.complete()
      if let first = remarks.first {
        throw OperationError(.failed, "restore", subject: first.path, reason: first.remark)
      }
    }
  }

  /// Deletes the data that the policy lets the platform delete. The age of an entry counts from its
  /// modification: the copy was just made, so its access times are meaningless.
  func purge(_ wanted: ScenarioAction.Purge) throws {
    _ = try Recovery.beforeChange(
      of: copy.find(), policy: policy, isForced: true, isPreview: false, again: copy.find,
      notify: { _, _ in })
    var options = ScanOptions(destination: .unrestricted, isStopping: isStopping)
    options.workers = 1
    let scan = DeviceScan.run(try device(), policy: policy, options: options)
    var spaces: [UInt64: VolumeSpace] = [:]
    for container in scan.containers {
      guard let root = container.entries.first else { continue }
      spaces[root.status.identity.device] =
        try Directory.open(resolved: container.container.absolutePath).space()
    }
    let request: PurgeRequest =
      switch wanted {
      case .level(let level): PurgeRequest(.everything, level: level, spaces: spaces)
      case .free(let bytes): PurgeRequest(.free(UInt64(clamping: bytes)), spaces: spaces)
      }
    let operation = PurgeOperation(
      PurgePlan.make(scan, request),
      PurgeOptions(isStopping: isStopping, sign: { _, _ in nil }))
    let report = try carryOut { operation.run() }
    if interruption != nil { return }
    if report.isInterrupted { throw OperationError.scenarioInterrupted }
    if let failed = report.failed.first {
      throw OperationError(.failed, "purge", subject: failed.path, reason: failed.remark)
    }
  }
}

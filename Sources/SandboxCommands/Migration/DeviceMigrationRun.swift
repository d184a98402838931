internal import ArchiveStore
internal import Backup
internal import Codecs
internal import DeviceDiscovery
internal import DeviceScan
internal import DeviceTransaction
internal import Migration
internal import PolicyEngine
internal import Restore
internal import SandboxModel
internal import SnapshotQueries
internal import SystemIO

/// The migration of apps between two devices whose containers have the same logical names, or from
/// a snapshot, with its report.
struct DeviceMigrationRun {
  let command: MigrateCommand
  private let source: MigrationEndpoint
  private let target: DeviceMigrationTarget
  /// The target as the apps of one form in a home directory; nil for other devices.
  private let home: AppPairing.Side?

  init(_ command: MigrateCommand, from source: MigrationEndpoint, to target: MigrationEndpoint)
    throws
  {
    guard let root = target.root, let layout = target.layout else {
      throw UsageError(
        .invalidValue, "'\(command.to)' is a snapshot",
        hint: "the target is a directory: '--to [LAYOUT:]ROOT'")
    }
    self.command = command
    self.source = source
    self.target = try DeviceMigrationTarget(at: root, layout, from: source.layout)
    if case .home(let side) = target { home = side } else { home = nil }
  }

  func run(_ console: Console) throws -> ExitStatus {
    if case .snapshot(let name) = source { return try run(snapshot: name, console) }
    let device = try Device.find(root: source.root ?? "", layout: source.layout ?? target.layout)
    let migration = try DeviceMigration(
      of: command.apps.map { try device.app(ByteString($0)) }, from: device, to: target
    ) { try command.policy.compile(for: $0.layout, version: $0.policyVersion) }
    let previews = try migration.preview(
      ScanOptions(destination: command.repository.knownDestination.withBundles),
      isForced: command.change.force || command.change.dryRun)
    if command.change.force || command.change.dryRun { console.warn(ofInterruptedOn: device) }
    if command.change.dryRun {
      try show(previews, console)
      return Self.status(of: previews)
    }
    let opened = try command.repository.choice(for: console).openOrMake(console)
    let stored = try store(migration, in: opened, console)
    let status = try migration.withTarget {
      try restore(stored, isOfTarget: device.layout == target.layout, from: opened, console)
    }
    showProblems(previews, console)
    return ExitStatus.together([status, Self.status(of: previews)])
  }

  private func run(snapshot name: ByteString, _ console: Console) throws -> ExitStatus {
    let opened = try command.repository.open(console)
    let stored = try SnapshotFinder(opened.repository, console).find(
      SnapshotPath(name).name, holding: command.apps)
    try opened.repository.requireTrusted(stored, "migrate")
    let own = Layout(rawValue: stored.snapshot.device.layout)
    if let home, let own, own != target.layout, let form = Packaging(ofDevicesIn: own) {
      let reader = try opened.repository.beginCarefulReading()
      defer { console.warn(of: reader.remarks) }
      return try SnapshotMigration(
        command: command, stored: stored, reader: reader, opened: opened
      ).run(from: form, to: home, console)
    }
    return try restore(
      target.accept(stored), isOfTarget: own == target.layout, from: opened, console)
  }

  private func store(
    _ migration: DeviceMigration, in opened: OpenRepository, _ console: Console
  ) throws -> StoredSnapshot {
    let stored = try command.progress.run(ProgressCounters(), command.output) { isStopping in
      let request = BackupRequest(
        program: Version.text, cache: Host.cacheDirectory, isStopping: isStopping)
      return try migration.store(
        ScanOptions(
          destination: opened.repository.safetyDestination,
          excluded: try opened.protectedDirectories(), isStopping: isStopping),
        by: SafetySnapshotMaker(request, in: opened.repository))
    }
    if !command.output.json, !command.output.quiet {
      try console.result("stored the source: snapshot \(stored.id.hex.prefix(8))")
    }
    return stored
  }

  /// Restores the snapshot of the source.
  ///
  /// - Parameter isOfTarget: whether its policy is one for the target's layout.
  private func restore(
    _ stored: StoredSnapshot, isOfTarget: Bool, from opened: OpenRepository, _ console: Console
  ) throws -> ExitStatus {
    let apps = try stored.snapshot.identifiers(of: command.apps)
    if !command.allowDowngrade { try target.refuseNewer(stored.snapshot, of: apps) }
    let reader = try opened.repository.beginCarefulReading()
    defer { console.warn(of: reader.remarks) }
    var run = RestoreCommand.DeviceRun(
      root: target.root, isPreview: command.change.dryRun, isForced: command.change.force,
      policy: command.policy, listsAll: command.listAll, progress: command.progress,
      output: command.output)
    run.name = "migration"
    run.usesStoredPolicy = isOfTarget
    run.groupOption = "--all"
    return try run.restore(
      stored, from: reader, in: opened.repository,
      protecting: try opened.protectedDirectories(),
      adapt: { request in
        request.apps = apps
        request.overwrite = .never
        request.savesFirst = !command.change.noSnapshot && !target.isNew
      }, console)
  }
}

internal import ArchiveStore
internal import ArgumentParser
internal import Backup
internal import Codecs
internal import DeviceDiscovery
internal import DeviceTransaction
internal import PolicyEngine
internal import SandboxModel
internal import SnapshotQueries
internal import SystemIO

/// The device that an export backs up first, instead of using an existing snapshot.
struct ExportedDeviceOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Back up the device in this directory, and export that snapshot.",
      valueName: "[layout:]root"),
    completion: .directory)
  var fromDevice: ByteString?

  @Option(
    name: .customLong("app"),
    help: .app(
      "Export only this app of the device and the groups it shares", addition: "may be repeated"))
  var apps: [ByteString] = []

  @OptionGroup var bundles: BundleOptions
  @OptionGroup var policy: PolicyChoice

  /// The result of the backup: the snapshot in its repository, and whether it has everything.
  struct Outcome {
    let repository: Repository
    let stored: StoredSnapshot
    let status: ExitStatus
  }

  /// Returns the device; nil if a snapshot is exported.
  ///
  /// - Throws: `ModelError` if the directory is not a device.
  func device() throws -> Device? {
    guard let fromDevice else { return nil }
    let endpoint = try MigrationEndpoint(target: fromDevice)
    return try Device.find(root: endpoint.root ?? fromDevice, layout: endpoint.layout)
  }

  /// Backs up the device as `backup` does: by the policy, incrementally, into the repository.
  func backUp(
    _ device: Device, to choice: RepositoryOptions.Choice, progress: ProgressOptions,
    list: ListOptions, output: OutputOptions, _ console: Console
  ) throws -> Outcome {
    let opened = try choice.openOrMake(console)
    let repository = opened.repository
    let backup = DeviceBackup(
      to: repository, storage: try opened.storage.directoryIdentity(), cache: Host.cacheDirectory)
    var source = BackupSource(
      device, policy: try policy.compile(for: device.layout, version: device.policyVersion),
      for: bundles.deciding(for: repository.destination))
    source.apps = AppNames(apps)
    let counters = ProgressCounters()
    let outcome = try progress.run(counters, output) { isStopping in
      try backup.run(
        source,
        BackupRequest(
          program: Version.text, cache: Host.cacheDirectory, isStopping: isStopping,
          counters: counters),
        waiting: 0, again: { try Device.find(root: device.root, layout: device.layout) },
        didFindRisk: console.warning)
    }
    let stored = try show(outcome, of: repository, list: list, output: output, console)
    return Outcome(
      repository: repository, stored: stored, status: outcome.isComplete ? .done : .doneInPart)
  }

  /// Prints the problems of the backup. Returns its snapshot.
  private func show(
    _ outcome: DeviceBackup.Outcome, of repository: Repository, list: ListOptions,
    output: OutputOptions, _ console: Console
  ) throws -> StoredSnapshot {
    let report = outcome.report
    console.show(outcome.interrupted, of: outcome.plan.device, all: list.all)
    console.remarks(report.unreadable, as: .warning("not in the snapshot: "), all: list.all)
    if !output.quiet { console.remarks(report.warnings, as: .note(""), all: list.all) }
    console.warn(ofRefused: report.snapshot, in: repository)
    let stored = try outcome.requireSnapshot(to: "export")
    if !output.json, !output.quiet {
      try console.result("stored the device: snapshot \(stored.id.hex.prefix(8))")
    }
    return stored
  }
}

internal import AppPackages
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

/// The migration of apps between two devices of one layout, whose containers have the same logical
/// names, or from a snapshot.
///
/// The source's containers are stored in a snapshot, unless it is one, and restored into the target:
/// under its journal, with a snapshot of the target first, and the data of apps that are not
/// installed in the safe harbor. Existing files stay as they are.
struct DeviceMigration {
  private let command: MigrateCommand
  private let source: MigrationPlace
  private let root: ByteString
  private let layout: Layout

  init(_ command: MigrateCommand, from source: MigrationPlace, to target: MigrationPlace) throws {
    guard let root = target.root, let layout = target.layout else {
      throw UsageError(
        .invalidValue, "'\(command.to)' is a snapshot",
        hint: "the target is a directory: '--to [LAYOUT:]ROOT'")
    }
    if let own = source.layout, own != layout { throw Self.otherLayout(own.rawValue, layout) }
    self.command = command
    self.source = source
    (self.root, self.layout) = (root, layout)
  }

  private static func otherLayout(_ source: String, _ target: Layout) -> OperationError {
    OperationError(
      .failed, code: .layoutMismatch, "migrate",
      reason: "the layouts \(ByteString(source)) and \(target.rawValue) do not have the same "
        + "containers",
      hint: "'sandboxctl restore SNAP --to-device ROOT' makes a device of a snapshot to migrate "
        + "from; 'sandboxctl export' writes the data in other formats")
  }

  func run(_ console: Console) throws -> ExitStatus {
    if case .snapshot(let name) = source {
      let (repository, storage) = try command.repository.open(console)
      let name = try SnapshotPath(name).name
      let stored = try SnapshotFinder(repository, console).find(name, holding: command.apps)
      try repository.requireTrusted(stored, "migrate")
      return try restore(stored, from: (repository, storage), console)
    }
    let device = try Device.find(root: source.root ?? "", layout: layout)
    let apps = try command.apps.map { try device.app(ByteString($0)).identifier }
    let pairs = try ContainerPairing.pairs(from: device, to: target(), apps: Set(apps))
    if command.change.dryRun { return try show(pairs, console) }
    try requireStopped(device, pairs)
    let opened = try command.repository.choice().openOrMake(console)
    let place = (opened.repository, opened.storage)
    let stored = try store(pairs, of: device, in: place, console)
    return try restore(stored, from: place, console)
  }

  private func target() throws -> Device { try Device.find(root: root, layout: layout) }

  // MARK: - The source

  /// Refuses a source whose app is running: its files could change while they are stored.
  private func requireStopped(_ device: Device, _ pairs: [ContainerPairing]) throws {
    if command.change.force { return }
    let containers = Set(pairs.map(\.source.logicalPrefix))
    let scan = DeviceScan.run(
      device, policy: try command.policy.compile(for: layout), options: ScanOptions()
    ) { containers.contains($0.logicalPrefix) }
    guard let sign = RunningApps.signs(in: scan).first else { return }
    throw OperationError(
      .failed, code: .appRunning, "migrate from", subject: device.root, reason: sign.text,
      hint: "close the app and try again, or add '--force'")
  }

  /// Stores the containers of the source that have a counterpart.
  private func store(
    _ pairs: [ContainerPairing], of device: Device,
    in place: (repository: Repository, storage: LocalStorage), _ console: Console
  ) throws -> StoredSnapshot {
    let (repository, storage) = place
    let wanted = pairs.filter { $0.counterpart != .noHome }
    let (containers, apps) = (
      Set(wanted.map(\.source.logicalPrefix)),
      Set(wanted.compactMap { $0.source.owner?.bytes.utf8 })
    )
    let policy = try command.policy.compile(for: layout, version: device.version)
    let counters = ProgressCounters()
    let stored = try command.progress.run(counters, command.output) { isStopping in
      let scan = DeviceScan.run(
        device, policy: policy,
        options: ScanOptions(
          destination: Destination(isUnencrypted: true), excluded: [try storage.identity()],
          isStopping: isStopping)
      ) { containers.contains($0.logicalPrefix) }
      let request = BackupRequest(
        program: Version.text, cache: Host.cacheDirectory, isStopping: isStopping)
      do {
        return try SafetySnapshotMaker(request, in: repository).save(
          scan, reason: .manual, scope: .apps(apps.sorted()), hint: "the target is unchanged",
          room: { _ in 0 })
      } catch let error as OperationError where error.code == .safetySnapshotFailed {
        throw OperationError(
          error.kind, code: error.code, "store the data of", subject: device.root,
          reason: error.parts.reason ?? error.description, hint: "the target is unchanged")
      }
    }
    guard let stored else {
      throw OperationError(
        .failed, code: .nothingReadable, "migrate from", subject: device.root,
        reason: "it has nothing to store")
    }
    if !command.output.json, !command.output.quiet {
      try console.result("stored the source: snapshot \(stored.id.hex.prefix(8))")
    }
    return stored
  }

  /// Prints the containers of the source with their counterparts.
  private func show(_ pairs: [ContainerPairing], _ console: Console) throws -> ExitStatus {
    for pair in pairs {
      let path = pair.source.logicalPrefix
      if command.output.json {
        let target = pair.counterpart.path.map { JSON.path($0, named: "target") } ?? []
        let fate = [JSON.Member("fate", .string(pair.counterpart.word))]
        try console.result(JSON.object(JSON.path(path) + fate + target))
      } else {
        let target = pair.counterpart.path.map { " -> \($0)" } ?? ""
        try console.result("\(pair.counterpart.word)  \(path)\(target)")
      }
    }
    return .done
  }

  // MARK: - The target

  private func restore(
    _ stored: StoredSnapshot, from place: (repository: Repository, storage: LocalStorage),
    _ console: Console
  ) throws -> ExitStatus {
    let (repository, storage) = place
    let record = stored.snapshot.device
    guard record.layout == layout.rawValue else { throw Self.otherLayout(record.layout, layout) }
    let apps = try stored.snapshot.identifiers(of: command.apps)
    try refuseNewer(stored.snapshot, apps)
    let reader = try repository.beginCarefulReading()
    defer { console.warn(of: reader.remarks) }
    let preparation = try DeviceRestorePreparation(
      of: stored, to: root, from: reader, protecting: [try storage.identity()],
      isPreview: command.change.dryRun)
    let (plan, recovery) = try command.progress.plan("migration", command.output) { isStopping in
      try preparation.plan(
        isForced: command.change.force,
        compile: { device in
          try command.policy.compile(
            for: device.layout, version: device.version, orElse: stored.snapshot.policy.name)
        }, notify: { console.show($0, of: $1, all: command.all) },
        adapt: { request in
          request.apps = apps
          request.overwrite = .never
          request.savesFirst = !command.change.noSnapshot
          request.isStopping = isStopping
        })
    }
    let needs = plan.volumeNeeds(from: reader)
    let text = RestoreCommand.DeviceText(plan, listsAll: command.all)
    if command.change.dryRun {
      try command.output.json ? console.result(plan.json(needs)) : text.show(console, needs)
      return RestoreCommand.status(
        damaged: plan.damaged, failed: plan.remarks(\.blocked), needs)
    }
    try recovery.requireNoneBlocks(plan.subjects)
    console.showPending(recovery)
    let counters = ProgressCounters()
    let report = try command.progress.run(counters, command.output) { isStopping in
      let saving = BackupRequest(
        program: Version.text, cache: Host.cacheDirectory, isStopping: isStopping)
      return try DeviceRestoreOperation(
        plan, from: reader, saving: SafetySnapshotMaker(saving, in: repository),
        counters: counters, isStopping: isStopping
      ).run()
    }
    console.warn(ofRefused: report.saved, in: repository)
    if command.output.json {
      try console.result(report.json(plan))
    } else {
      try text.show(report, console, quiet: command.output.quiet)
    }
    return RestoreCommand.status(damaged: report.damaged, failed: report.remarks(\.failed))
  }

  /// Refuses data of a newer version of an app than the one that the target has.
  private func refuseNewer(_ snapshot: Snapshot, _ apps: [String]) throws {
    if command.allowDowngrade { return }
    guard let device = try? target() else { return }
    for record in snapshot.apps where apps.isEmpty || apps.contains(record.identifier) {
      let app = device.apps.first { app in
        app.isInstalled && app.identifier.bytes == ByteString(record.identifier)
      }
      let version = AppVersion(
        version: record.version.map { ByteString($0) }, build: record.build.map { ByteString($0) })
      guard let app, AppVersion(app).isEarlier(than: version) else { continue }
      throw OperationError(
        .failed, code: .downgradeRefused, "migrate", subject: app.identifier,
        reason: "the data is of version \(version.text), the app in the target has version "
          + AppVersion(app).text,
        hint: "update the app first, or add '--allow-downgrade'")
    }
  }
}

extension Device {
  /// The platform's version for a policy; nil if it is unknown.
  fileprivate var version: OSVersion? { osVersion?.utf8.flatMap { OSVersion($0) } }
}

extension ContainerPairing.Counterpart {
  /// The word for output, as `restore --to-device` has it.
  fileprivate var word: String {
    switch self {
    case .present: "merge"
    case .missing: "make"
    case .appMissing: "harbor"
    case .noHome: "no-place"
    }
  }

  /// The path of a present container.
  fileprivate var path: ByteString? {
    if case .present(let path) = self { path } else { nil }
  }
}

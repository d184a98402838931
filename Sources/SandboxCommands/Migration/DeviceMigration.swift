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

/// The migration of apps between two devices whose containers have the same logical names, or from a
/// snapshot.
///
/// The source's containers are stored in a snapshot, unless it is one, and restored into the target:
/// under its journal, with a snapshot of the target first, and the data of apps that are not
/// installed in the safe harbor. Existing files stay as they are.
struct DeviceMigration {
  let command: MigrateCommand
  private let source: MigrationEndpoint
  private let root: ByteString
  private let layout: Layout
  /// The target as the apps of one form in a home directory; nil for other devices.
  private let home: AppPairing.Side?
  /// The bundle to create as the target; nil if the target exists.
  private let bundle: NewAppDataBundle?

  init(_ command: MigrateCommand, from source: MigrationEndpoint, to target: MigrationEndpoint)
    throws
  {
    guard let root = target.root, let layout = target.layout else {
      throw UsageError(
        .invalidValue, "'\(command.to)' is a snapshot",
        hint: "the target is a directory: '--to [LAYOUT:]ROOT'")
    }
    if let own = source.layout, !ContainerPairing.haveSameContainers(own, layout) {
      throw Self.otherFamily(own, layout)
    }
    self.command = command
    self.source = source
    (self.root, self.layout) = (root, layout)
    if case .home(let side) = target { home = side } else { home = nil }
    bundle = layout == .coreSimulator ? try NewAppDataBundle(at: root) : nil
  }

  func run(_ console: Console) throws -> ExitStatus {
    if case .snapshot(let name) = source { return try run(snapshot: name, console) }
    let device = try Device.find(root: source.root ?? "", layout: source.layout ?? layout)
    let apps = try command.apps.map { try device.app(ByteString($0)) }
    let pairs: [ContainerPairing]
    let app: App?
    if let bundle {
      let only = try onlyApp(among: apps.isEmpty ? device.apps : apps)
      pairs = try ContainerPairing.pairs(from: device, of: only.identifier, to: bundle)
      app = only
    } else {
      pairs = try ContainerPairing.pairs(
        from: device, to: target(), apps: Set(apps.map(\.identifier)))
      app = nil
    }
    let previews = try preview(pairs, of: device)
    if command.change.dryRun {
      try show(previews, console)
      return Self.status(of: previews)
    }
    let opened = try command.repository.choice().openOrMake(console)
    let stored = try store(pairs, of: device, in: opened, console)
    let status = try make(of: app) {
      try restore(stored, isOfTarget: device.layout == layout, from: opened, console)
    }
    showProblems(previews, console)
    return ExitStatus.together([status, Self.status(of: previews)])
  }

  private func run(snapshot name: ByteString, _ console: Console) throws -> ExitStatus {
    let opened = try command.repository.open(console)
    let stored = try SnapshotFinder(opened.repository, console).find(
      SnapshotPath(name).name, holding: command.apps)
    try opened.repository.requireTrusted(stored, "migrate")
    let record = stored.snapshot.device
    let own = Layout(rawValue: record.layout)
    if let home, let own, own != layout, let form = Packaging(ofDevicesIn: own) {
      let reader = try opened.repository.beginCarefulReading()
      defer { console.warn(of: reader.remarks) }
      return try SnapshotMigration(
        command: command, stored: stored, reader: reader, opened: opened
      ).run(from: form, to: home, console)
    }
    // A bundle has the data of one app, and a snapshot can have groups and extensions of it.
    guard let own, ContainerPairing.haveSameContainers(own, layout), bundle == nil else {
      throw otherPlace(record.layout, stored)
    }
    return try restore(stored.labelled(layout), isOfTarget: own == layout, from: opened, console)
  }

  private func target() throws -> Device { try Device.find(root: root, layout: layout) }

  // MARK: - Bundles

  /// Creates the bundle, if the target is a new one, and calls `body`. A bundle without data is
  /// removed if that fails.
  private func make(of app: App?, _ body: () throws -> ExitStatus) throws -> ExitStatus {
    guard let bundle, let app else { return try body() }
    try bundle.make(of: app.identifier, version: app.version, build: app.build)
    do {
      let status = try body()
      bundle.finish()
      return status
    } catch {
      bundle.removeIfEmpty()
      throw error
    }
  }

  /// Returns the only one of several apps with data.
  private func onlyApp(among apps: [App]) throws -> App {
    if apps.count == 1, let app = apps.first { return app }
    let names = apps.map(\.identifier.description).joined(separator: ", ")
    throw UsageError(
      .optionRequired, "an .xcappdata has the data of one app, and the source has: \(names)",
      hint: "name one with '--app'")
  }

  // MARK: - Refusals

  private static func otherFamily(_ source: Layout, _ target: Layout) -> OperationError {
    OperationError(
      .failed, code: .layoutMismatch, "migrate",
      reason: "the layouts \(source.rawValue) and \(target.rawValue) do not have the same "
        + "containers",
      hint: "sandboxctl-migrate(7) has a table of sources and targets; 'sandboxctl export' writes "
        + "other formats")
  }

  /// Returns the error for a snapshot with another layout than the target, or for a new bundle.
  private func otherPlace(_ name: String, _ stored: StoredSnapshot) -> OperationError {
    let reason =
      bundle == nil
      ? "the snapshot's layout is \(ByteString(name)), the target's \(layout.rawValue)"
      : "a snapshot can have groups and extensions of an app, which a bundle has no place for"
    return OperationError(
      .failed, code: .layoutMismatch, "migrate", reason: reason,
      hint: "'sandboxctl restore \(stored.id.hex.prefix(8)) --to DIR' writes the data to a plain "
        + "directory")
  }

  // MARK: - The source

  /// Compares the containers with their counterparts. Refuses a source whose app is running: its
  /// files could change while they are stored.
  private func preview(_ pairs: [ContainerPairing], of device: Device) throws -> [ContainerPreview]
  {
    let containers = Set(pairs.map(\.source.logicalPrefix))
    let policy = try command.policy.compile(for: device.layout, version: device.policyVersion)
    let scan = DeviceScan.run(
      device, policy: policy,
      options: ScanOptions(destination: command.repository.knownDestination.withBundles)
    ) { containers.contains($0.logicalPrefix) }
    if !command.change.force, !command.change.dryRun,
      let sign = RunningApps.signs(in: scan).first
    {
      throw OperationError(
        .failed, code: .appRunning, "migrate from", subject: device.root, reason: sign.text,
        hint: "close the app and try again, or add '--force'")
    }
    return ContainerPreview.make(pairs, in: scan)
  }

  /// Stores the containers of the source that have a counterpart, with the target's layout: the
  /// logical names are the same.
  private func store(
    _ pairs: [ContainerPairing], of device: Device,
    in opened: OpenRepository, _ console: Console
  ) throws -> StoredSnapshot {
    let wanted = pairs.filter { $0.counterpart != .noHome }
    let (containers, apps) = (
      Set(wanted.map(\.source.logicalPrefix)),
      Set(wanted.compactMap { $0.source.owner?.bytes.utf8 })
    )
    let policy = try command.policy.compile(for: device.layout, version: device.policyVersion)
    let labelled = device.layout == layout ? device : device.labelled(layout)
    let counters = ProgressCounters()
    let stored = try command.progress.run(counters, command.output) { isStopping in
      let scan = DeviceScan.run(
        labelled, policy: policy,
        options: ScanOptions(
          destination: opened.repository.safetyDestination,
          excluded: try opened.protectedDirectories(), isStopping: isStopping)
      ) { containers.contains($0.logicalPrefix) }
      let request = BackupRequest(
        program: Version.text, cache: Host.cacheDirectory, isStopping: isStopping)
      do {
        return try SafetySnapshotMaker(request, in: opened.repository).save(
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

  // MARK: - The target

  /// Restores the snapshot of the source.
  ///
  /// - Parameter isOfTarget: whether its policy is one for the target's layout.
  private func restore(
    _ stored: StoredSnapshot, isOfTarget: Bool, from opened: OpenRepository, _ console: Console
  ) throws -> ExitStatus {
    let repository = opened.repository
    let apps = try stored.snapshot.identifiers(of: command.apps)
    try refuseNewer(stored.snapshot, apps)
    let reader = try repository.beginCarefulReading()
    defer { console.warn(of: reader.remarks) }
    var run = RestoreCommand.DeviceRun(
      root: root, isPreview: command.change.dryRun, isForced: command.change.force,
      policy: command.policy, listsAll: command.listAll, progress: command.progress,
      output: command.output)
    run.name = "migration"
    run.usesStoredPolicy = isOfTarget
    run.groupOption = "--all"
    return try run.restore(
      stored, from: reader, in: repository, protecting: try opened.protectedDirectories(),
      adapt: { request in
        request.apps = apps
        request.overwrite = .never
        // A new bundle has nothing to save.
        request.savesFirst = !command.change.noSnapshot && bundle == nil
      }, console)
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
  /// Returns the device with another layout, for a snapshot to restore into a device of that layout.
  fileprivate func labelled(_ layout: Layout) -> Device {
    Device(
      root: root, layout: layout,
      facts: Facts(platform: platform, version: osVersion, name: name), identity: identity,
      apps: apps, containers: containers, systemContainers: systemContainers, findings: findings)
  }
}

extension StoredSnapshot {
  /// Returns the snapshot for a restore into a device of another layout with the same containers.
  fileprivate func labelled(_ layout: Layout) -> StoredSnapshot {
    var snapshot = snapshot
    snapshot.device.layout = layout.rawValue
    return StoredSnapshot(id: id, snapshot: snapshot, signature: signature)
  }
}

extension Packaging {
  /// The form of the apps in devices of a layout; nil if apps have one form only there.
  fileprivate init?(ofDevicesIn layout: Layout) {
    switch layout {
    case .flatpak: self = .flatpak
    case .snap: self = .snap
    case .xdg: self = .host
    default: return nil
    }
  }
}

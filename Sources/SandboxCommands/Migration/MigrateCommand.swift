internal import AppPackages
internal import ArchiveStore
internal import ArgumentParser
internal import Backup
internal import DeviceScan
internal import DeviceTransaction
internal import Migration
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// `sandboxctl migrate --from [LAYOUT:]ROOT|SNAP --to [LAYOUT:]ROOT (--app APP | --all)`.
struct MigrateCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "migrate",
      abstract: "Move an app's data to another device or form of the app",
      usage: """
        sandboxctl migrate --from <place> --to <place> --app <app> [<options>]
        sandboxctl migrate --from <place> --to <place> --all [<options>]
        """,
      discussion: """
        Copies data between the forms of an app (host, deb, flatpak, snap) by tables, and between \
        devices of one layout. A place is [LAYOUT:]ROOT, where ROOT is a home directory or a \
        device; --from may also be a snapshot. The source is not changed, and nothing in the \
        target is replaced: entries that exist there already, conflict or have no place are \
        reported. See sandboxctl-migrate(7).

        \(Examples.text([
          "sandboxctl migrate --from host:home --to flatpak:home --all --dry-run",
          "sandboxctl migrate --from host:home --to flatpak:home --app firefox",
        ]))
        """)
  }

  @Option(
    help: ArgumentHelp(
      "The source: a home directory or device, or a snapshot.", valueName: "place"),
    completion: .directory)
  var from: ByteString

  @Option(
    help: ArgumentHelp("The target: a home directory or device.", valueName: "place"),
    completion: .directory)
  var to: ByteString

  @Option(
    name: .customLong("app"),
    help: .app("Migrate only this app", or: "the name of its table", addition: "may be repeated"))
  var apps: [String] = []

  @Flag(help: "Migrate all apps.")
  var all = false

  @Flag(help: "List everything (default: the 20 largest, and a count of the others).")
  var listAll = false

  @OptionGroup var change: AppChangeOptions

  @Flag(help: "Migrate data of a newer version than that of the app in the target.")
  var allowDowngrade = false

  @OptionGroup var policy: PolicyChoice
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  /// Elsewhere `all` lists everything; set for all commands, it must not migrate all apps.
  static var ownOptions: Set<String> { ["all"] }

  /// A setting that permits something for some apps or locations does not apply to others.
  static var precedence: [OptionPrecedence] {
    let destructive: Set<String> = ["allow-downgrade", "force", "no-snapshot"]
    return OptionPrecedence.oneOf(["all"], ["app"], dropping: destructive)
      + OptionPrecedence.target(["from", "to"], dropping: destructive)
  }

  func run(_ console: Console) throws -> ExitStatus {
    console.listOption = "--list-all"
    if apps.isEmpty != all {
      throw UsageError(
        all ? .optionsConflict : .optionRequired,
        all ? "'--app' and '--all' cannot be used together" : "no app given",
        hint: "name apps with '--app APP', or all with '--all'")
    }
    if try all && !MigrationEndpoint.hasLayout(from) && !MigrationEndpoint.hasLayout(to),
      case .machine(let source) = try MigrationEndpoint(source: from, isWhole: true),
      case .machine(let target) = try MigrationEndpoint(target: to, isWhole: true)
    {
      return try MachineMigration(self, from: source, to: target).run(console)
    }
    let source = try MigrationEndpoint(source: from)
    let target = try MigrationEndpoint(target: to)
    if let (source, target) = Self.forms(source, target) {
      return try FormMigration(self, from: source, to: target).run(console)
    }
    return try DeviceMigrationRun(self, from: source, to: target).run(console)
  }

  /// Returns the two sides if apps are migrated entry by entry between them, or nil for devices and
  /// snapshots.
  private static func forms(
    _ source: MigrationEndpoint, _ target: MigrationEndpoint
  ) -> (AppPairing.Side, AppPairing.Side)? {
    switch (source, target) {
    case (.home(let source), .home(let target)): (source, target)
    case (.home(let source), .device) where source.packaging == .host:
      target.desktop.map { (source, $0) }
    case (.device, .home(let target)) where target.packaging == .host:
      source.desktop.map { ($0, target) }
    default: nil
    }
  }
}

/// The migration of apps between forms or homes, one after another.
struct FormMigration {
  private let command: MigrateCommand
  private let source: AppPairing.Side
  private let target: AppPairing.Side

  init(_ command: MigrateCommand, from source: AppPairing.Side, to target: AppPairing.Side) throws {
    if source == target {
      throw UsageError(
        .invalidValue, "'\(command.from)' is the source and the target",
        hint: "name another home directory or another layout with '--to'")
    }
    self.command = command
    (self.source, self.target) = (source, target)
  }

  /// Migrates the apps, and prints the totals. The failure of one app does not stop the others.
  func run(_ console: Console) throws -> ExitStatus {
    var total = MigrationTotals()
    try run(adding: &total, console)
    try total.show(
      isPreview: command.change.dryRun, command.output, listsAll: command.listAll, console)
    return total.status
  }

  /// Migrates the apps and counts them.
  func run(adding total: inout MigrationTotals, _ console: Console) throws {
    let recovered = try target.recover(
      compile: { try command.policy.compile(for: $0) }, isForced: command.change.force,
      isPreview: command.change.dryRun,
      notify: { report, device in
        console.show(report, of: device, all: command.listAll)
        console.showPending(report)
      })
    let (library, refused) = try library(console)
    let versions = (from: AppVersions(of: source), to: AppVersions(of: target))
    let pairing = AppPairing(
      from: source, to: target, in: library, installed: versions.to.installed,
      refused: refused)
    var routes: [MigrationRoute] = []
    if command.all {
      let found = pairing.all()
      routes = found.routes
      console.remarks(found.without, as: .note("skipped: "), all: command.listAll)
      console.remarks(found.unreadable, as: .warning("not copied: "), all: command.listAll)
      total.add(found)
    } else {
      routes = try command.apps.map { try pairing.route(for: ByteString($0)) }
    }
    for route in routes {
      do {
        total.add(try migrate(route, versions: versions, after: recovered, console))
      } catch {
        let failure = Failure(error)
        if !command.all && routes.count == 1 || failure.status == .interrupted { throw error }
        console.warning(failure.message)
        if let hint = failure.hint { console.hint(hint) }
        total.fail()
      }
    }
  }

  /// Returns the tables; for apps of macOS also those that their bundles contain, and the apps
  /// whose lists are unusable.
  private func library(
    _ console: Console
  ) throws -> (tables: MigrationLibrary, refused: Set<ByteString>) {
    let library = try MigrationFiles.library()
    guard let side = [source, target].first(where: { $0.packaging == .macOS }) else {
      return (library, [])
    }
    let bundles = BundleMigrations(home: side.home)
    console.remarks(bundles.problems, as: .warning("not used: "), all: command.listAll)
    return (library.adding(bundles.tables), bundles.refused)
  }

  private func migrate(
    _ route: MigrationRoute, versions: (from: AppVersions, to: AppVersions),
    after recovered: [RecoveryReport], _ console: Console
  ) throws -> MigrationOutcome {
    let migration = try command.progress.plan("migration", command.output) { _ in
      try AppMigration.make(route)
    }
    guard migration.hasData || command.all else {
      throw OperationError(
        .notFound, code: .noApp, "migrate", subject: route.from.app,
        reason: "'\(route.from.home)' has no data of it as \(route.from.packaging.rawValue)",
        hint: "'sandboxctl apps' lists the apps of a device")
    }
    if !command.allowDowngrade {
      try migration.refuseNewer(
        versions.from.version(of: route.from, route.table),
        than: versions.to.version(of: route.to, route.table))
    }
    var outcome = MigrationOutcome(migration)
    outcome.isInstalled = versions.to.isInstalled(route.to, route.table)
    if command.change.force || command.change.dryRun { warn(ofOperationsOn: migration, console) }
    if command.change.dryRun {
      outcome.running = try migration.signsOfUse { try command.policy.compile(for: $0) }
    } else {
      outcome.report = try carryOut(migration, after: recovered, console)
    }
    try outcome.show(
      command.output, isForced: command.change.force, listsAll: command.listAll, console)
    return outcome
  }

  /// Warns about an operation on the source that makes a migration without '--force' refuse.
  private func warn(ofOperationsOn migration: AppMigration, _ console: Console) {
    do throws(OperationError) {
      try migration.requireSourceWithoutOperations()
    } catch {
      let isForced = command.change.force
      let end = isForced ? "'--force' migrates what is in place" : "refused without '--force'"
      let reason = error.parts.reason ?? error.description
      console.warning("'\(migration.route.from.app)': \(reason): \(end)")
      if !isForced, let hint = error.hint { console.hint(hint) }
    }
  }

  private func carryOut(
    _ migration: AppMigration, after recovered: [RecoveryReport], _ console: Console
  ) throws -> MigrationReport? {
    if migration.isIdle { return nil }
    let target = try MigrationTarget.find(for: migration)
    for report in recovered { try report.requireNoneBlocks([target.subject]) }
    let opened =
      command.change.noSnapshot ? nil : try AppChangeRun.open(command.repository, console)
    let counters = ProgressCounters()
    let report = try command.progress.run(counters, command.output) { isStopping in
      let scan = target.scan(
        policy: try command.policy.compile(for: target.device.layout),
        options: ScanOptions(
          destination: opened?.repository.safetyDestination ?? .unrestricted,
          excluded: try opened?.protectedDirectories() ?? [], isStopping: isStopping))
      var options = MigrationOperation.Options()
      options.isForced = command.change.force
      options.savesFirst = !command.change.noSnapshot
      let saving = BackupRequest(
        program: Version.text, cache: Host.cacheDirectory, isStopping: isStopping)
      return try MigrationOperation(
        migration, to: target, scanned: scan, options,
        saving: opened.map { SafetySnapshotMaker(saving, in: $0.repository) }, counters: counters,
        isStopping: isStopping
      ).run()
    }
    if let opened { console.warn(ofRefused: report.saved, in: opened.repository) }
    return report
  }
}

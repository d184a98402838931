internal import AppPackages
internal import AppUpdate
internal import ArchiveStore
internal import ArgumentParser
internal import Backup
internal import DeviceTransaction
internal import PolicyEngine
internal import Restore
internal import SandboxModel
internal import SystemIO

/// The options shared by the commands that install, replace and remove apps.
struct AppChangeOptions: ParsableArguments {
  @Flag(
    name: .shortAndLong, help: "Show the changes to the app and its data without making them.")
  var dryRun = false

  @Flag(help: "Do not make a snapshot of the current state first.")
  var noSnapshot = false

  @Flag(help: "Proceed even if the app is running.")
  var force = false
}

/// A command that installs, replaces or removes an app.
///
/// Each command declares its option groups itself. Nested groups are slow: in a debug build the
/// parser validates a group four times as often for each level of nesting.
protocol AppChangeCommand: SandboxCommand {
  var change: AppChangeOptions { get }
  var device: DeviceOptions { get }
  var policy: PolicyOptions { get }
  var repository: RepositoryOptions { get }
  var list: ListOptions { get }
  var progress: ProgressOptions { get }
  var output: OutputOptions { get }
}

extension AppChangeCommand {
  /// Returns the device, which the command line has to name: these commands never change the
  /// default device.
  fileprivate func find() throws -> Device {
    guard device.isNamed else {
      throw UsageError(
        .deviceRequired, "no device given",
        hint: "name it with '--root DIR' or '--device NAME'")
    }
    return try device.find()
  }
}

/// The app argument of the commands that take no package.
struct AppArgument: ParsableArguments {
  @Argument(help: .app("The app"))
  var app: ByteString

  /// Returns the identifier of the app on a device.
  func find(on device: Device) throws -> BundleIdentifier {
    try device.app(app).identifier
  }
}

/// The package argument of `install` and `reinstall`.
struct PackageArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "The app's directory or .ipa file; on flatpak and snap, the app's name.", valueName: "package"
    ),
    completion: .file())
  var package: ByteString
}

/// A run of one of these commands on a device.
struct AppChangeRun {
  private let command: any AppChangeCommand
  let preparation: AppChangePreparation
  /// The repository for the snapshot; nil if no snapshot is to be made, also because the platform
  /// performs the operation, or if no repository exists.
  let repository: OpenRepository?

  var device: Device { preparation.device }

  /// Whether the platform's own program performs the operation, so that its effects are only
  /// reported. That needs no repository.
  var isSimulated: Bool { device.layout.installer != nil }

  /// The destination of the snapshot, or of the one that would be made.
  var destination: Destination {
    repository?.repository.safetyDestination ?? command.repository.knownDestination.withBundles
  }

  /// Prepares the device, and opens the repository.
  init(_ command: any AppChangeCommand, _ console: Console) throws {
    self.command = command
    let change = command.change
    preparation = try AppChangePreparation(
      isForced: change.force, savesFirst: !change.noSnapshot, isPreview: change.dryRun,
      find: command.find, compile: { try command.policy.compile(for: $0, command.output, console) },
      notify: { console.show($0, of: $1, all: command.list.all) })
    let isUnsaved =
      change.dryRun || change.noSnapshot || preparation.device.layout.installer != nil
    repository = isUnsaved ? nil : try Self.open(command.repository, console)
  }

  /// Opens the repository. Returns nil if none is named and the user's own does not exist.
  static func open(
    _ options: RepositoryOptions, _ console: Console
  ) throws -> OpenRepository? {
    let choice: RepositoryOptions.Choice
    do { choice = try options.choice(for: console) } catch is UsageError { return nil }
    do {
      return try choice.open(console)
    } catch let error as StoreError {
      if error.code == .noRepository, choice.isStandard { return nil }
      throw error
    }
  }

  /// Returns the plan for a request.
  private func plan(_ request: AppChangeRequest) throws -> AppChangePlan {
    try command.progress.plan(request.change.rawValue, command.output) { isStopping in
      try preparation.plan(
        request, savingTo: repository?.storage, at: destination, isStopping: isStopping)
    }
  }

  /// Prints the plan, or carries it out with `body` and prints the report.
  func finish(
    _ plan: AppChangePlan, _ console: Console, from reader: RepositoryReader? = nil,
    body: (AppChangeOperation) throws -> AppChangeReport
  ) throws -> ExitStatus {
    let text = Text(plan, console, isQuiet: command.output.quiet, listsAll: command.list.all)
    console.warn(ofPerhapsTooMuch: plan.volumeNeeds(from: reader))
    let uncertain = plan.restore?.remarks(\.uncertainDatabases) ?? []
    console.remarks(uncertain, as: .warning(""), all: command.list.all)
    if command.change.dryRun || plan.isSimulated && plan.refusals.isEmpty {
      let refusals = plan.refusals + (plan.missingRoom(from: reader).map { [$0] } ?? [])
      try command.output.json ? console.result(plan.json(refusals)) : text.show(refusals)
      return refusals.isEmpty ? .done : .failed
    }
    console.showPending(try preparation.requireUnblocked(plan))
    if let repository, !repository.repository.isReadable {
      console.warning(
        "this host has no key of '\(repository.repository.location)': it cannot restore the "
          + "snapshot that is made first")
      console.hint(
        "'sandboxctl rollback' needs the identity of a recipient, with '--identity FILE'")
    }
    let counters = ProgressCounters()
    let report = try command.progress.run(counters, command.output) { isStopping in
      let saving = BackupRequest(
        program: Version.text, cache: Host.cacheDirectory, isStopping: isStopping)
      return try body(
        AppChangeOperation(
          plan, saving: repository.map { SafetySnapshotMaker(saving, in: $0.repository) },
          from: reader, counters: counters, isStopping: isStopping))
    }
    if let repository { console.warn(ofRefused: report.saved, in: repository.repository) }
    try command.output.json ? console.result(report.json(plan)) : text.report(report)
    return report.isComplete ? .done : .doneInPart
  }
}

extension AppChangeRun {
  /// Runs an operation on a package. If `name` is an app's name and the platform's own program
  /// performs the operation, only reports that.
  func exchange(
    _ name: ByteString, by change: AppChange, _ console: Console,
    adapting adapt: (inout AppChangeRequest) -> Void
  ) throws -> ExitStatus {
    if isSimulated {
      var request = AppChangeRequest(change, of: try identifier(of: name, for: change))
      adapt(&request)
      return try finish(plan(request), console) { try $0.run() }
    }
    if change == .reinstall, let error = noPackage(name) { throw error }
    let package = try Package(opening: name)
    for finding in package.app.findings { console.note("'\(finding.path)': \(finding.reason)") }
    var request = AppChangeRequest(change, of: package.app.identifier, package: package.app)
    adapt(&request)
    var entries = try package.entries()
    return try finish(plan(request), console) { try $0.run(&entries) }
  }

  /// Returns the error for the name of an app where a package is expected, with the bundle that the
  /// offload moved to the trash, if it is still there; nil if a file has the name, or no app does.
  private func noPackage(_ name: ByteString) -> OperationError? {
    guard (try? Host.realPath(name)) == nil, let app = try? device.app(name) else { return nil }
    let package = "PACKAGE is an app's directory (New.app) or an .ipa file"
    let bundle = trashedBundle(of: app).map { path in
      "; the offloaded bundle is in the trash: 'sandboxctl reinstall \(ShellWord.text(path)) "
        + "--root \(ShellWord.text(device.root))'"
    }
    return OperationError(
      .notFound, code: .notFound, "open the package", subject: name,
      reason: "it is the name of an app, and no file has it", hint: package + (bundle ?? ""))
  }

  /// Returns the newest bundle of an app that an offload moved to the trash; nil if there is none.
  private func trashedBundle(of app: App) -> ByteString? {
    let subject = ByteString("apps").appending(LogicalName(app.identifier.bytes).component)
    let items = (try? Trash(of: device).unmeasured()) ?? []
    for item in items.reversed() where item.operation == "offload" {
      for directory in item.directories {
        let bundles = directory.appending(subject).appending("bundle")
        let names = (try? Directory.open(path: bundles).names()) ?? []
        if let found = names.first(where: { $0.hasSuffix(".app") }) {
          return bundles.appending(found)
        }
      }
    }
    return nil
  }

  /// Returns the identifier of the app that a name means. An app to install need not be on the
  /// device.
  private func identifier(of name: ByteString, for change: AppChange) throws -> BundleIdentifier {
    if name.hasSuffix(".app") || name.hasSuffix(".ipa") {
      throw UsageError(
        .invalidValue,
        "cannot use the package '\(name)': "
          + "\(device.layout.installer ?? device.layout.rawValue) installs apps itself",
        hint: "give the app's name to see the effect on its data")
    }
    if change == .install, let given = BundleIdentifier(name) {
      return (try? device.app(given.bytes))?.identifier ?? given
    }
    return try device.app(name).identifier
  }

  /// Removes an app, with or without its data.
  func remove(_ named: AppArgument, by change: AppChange, _ console: Console) throws -> ExitStatus {
    let request = AppChangeRequest(change, of: try named.find(on: device))
    return try finish(try plan(request), console) { try $0.run() }
  }
}

internal import ArchiveStore
internal import ArgumentParser
internal import Lifecycle
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// What the commands share that install, replace and remove apps.
struct AppChangeOptions: ParsableArguments {
  @Flag(
    name: .shortAndLong, help: "Say what would become of the app and its data, and change nothing.")
  var dryRun = false

  @Flag(help: "Make no snapshot of what is there first.")
  var noSnapshot = false

  @Flag(help: "Go on though the app runs.")
  var force = false
}

/// A command that installs, replaces or removes an app.
///
/// Each declares its groups of options itself: in a debug build the parser checks a group four times as
/// often for each group that it lies in, and those of a group in a group took most of the time that the
/// program ran.
protocol AppChangeCommand: SandboxCommand {
  var change: AppChangeOptions { get }
  var device: DeviceOptions { get }
  var policy: PolicyOptions { get }
  var repository: RepositoryOptions { get }
  var progress: ProgressOptions { get }
  var output: OutputOptions { get }
}

extension AppChangeCommand {
  /// The device, which has to be named: these commands never change the one that is there by default.
  fileprivate func find() throws -> Device {
    guard device.isNamed else {
      throw UsageError(
        "it is not said which device is to be changed",
        hint: "name it with '--root DIR' or '--device NAME'")
    }
    return try device.find()
  }
}

/// One of these commands on one device.
struct AppChangeRun {
  private let command: any AppChangeCommand
  let device: Device
  let policy: CompiledPolicy
  /// The repository for the snapshot, where there is to be one and there is one.
  let repository: (repository: Repository, storage: LocalStorage)?
  /// What was interrupted on the device and could not be made good before.
  private let blocked: [BlockedRecovery]

  /// Finds the device, makes good what was interrupted there, unless nothing is to be changed, and opens
  /// the repository.
  init(_ command: any AppChangeCommand, _ console: Console) throws {
    self.command = command
    var found = try command.find()
    policy = try command.policy.compile(for: found, command.output, console)
    if command.change.dryRun {
      console.warn(ofInterruptedOn: found)
      blocked = []
    } else {
      let report = try console.recover(
        Recovery(found, policy: policy, isForced: command.change.force))
      blocked = report.blocked
      if !report.done.isEmpty { found = try command.find() }
    }
    device = found.stating(groupsOf: policy)
    repository =
      command.change.dryRun || command.change.noSnapshot ? nil : try Self.open(command.repository)
  }

  /// Opens the repository; nothing where nobody named one and the user's own is not there.
  static func open(
    _ options: RepositoryOptions
  ) throws -> (repository: Repository, storage: LocalStorage)? {
    let place: RepositoryLocation
    do { place = try options.place() } catch is UsageError { return nil }
    do {
      return try place.open()
    } catch let error as StoreError {
      if error.code == .noRepository, place.isStandard { return nil }
      throw error
    }
  }

  /// What is in the containers that an operation on an app is about.
  ///
  /// - Throws: `LifecycleError` where something on the app was interrupted and is not made good: nothing
  ///   can be planned then.
  func scan(for app: BundleIdentifier) throws -> DeviceScan {
    if let error = blocked.lazy.compactMap({ $0.refusal(of: app) }).first { throw error }
    return DeviceScan.run(
      device, policy: policy,
      options: ScanOptions(
        destination: Destination(isUnencrypted: true),
        excluded: try repository.map { [try $0.storage.identity()] } ?? [])
    ) { AppChangePlan.isConcerned($0, by: app, on: device) }
  }

  /// The request with what the options say.
  func adapted(_ request: AppChangeRequest) -> AppChangeRequest {
    var request = request
    request.isForced = command.change.force
    request.savesFirst = !command.change.noSnapshot
    return request
  }

  /// Plans what is asked for.
  func plan(_ request: AppChangeRequest) throws -> AppChangePlan {
    AppChangePlan.make(try scan(for: request.app), adapted(request))
  }

  /// Tells the plan, or carries it out with `body` and tells the report.
  func finish(
    _ plan: AppChangePlan, _ console: Console, from reader: RepositoryReader? = nil,
    _ body: (AppChangeOperation) throws -> AppChangeReport
  ) throws -> ExitStatus {
    let text = AppChangeText(plan, console, isQuiet: command.output.quiet)
    console.warn(ofPerhapsTooMuch: plan.volumeNeeds(from: reader))
    if command.change.dryRun || plan.isSimulated && plan.refusals.isEmpty {
      let refusals = plan.refusals + (plan.missingRoom(from: reader).map { [$0] } ?? [])
      try command.output.json ? console.result(plan.json(refusals)) : text.tell(refusals)
      return refusals.isEmpty ? .done : .failed
    }
    try console.pass(blocked) { $0.refusal(of: plan) }
    let counters = ProgressCounters()
    let report = try command.progress.run(counters, command.output) { isStopping in
      let saving = BackupRequest(
        program: Version.text, cache: Host.cacheDirectory, isStopping: isStopping)
      return try body(
        AppChangeOperation(
          plan, saving: saving, to: repository?.repository, from: reader, counters: counters,
          isStopping: isStopping))
    }
    try command.output.json ? console.result(report.json(plan)) : text.report(report)
    return report.isComplete ? .done : .doneInPart
  }
}

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

  @OptionGroup var device: DeviceOptions
  @OptionGroup var policy: PolicyOptions
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  /// The device, which has to be named: these commands never change the one that is there by default.
  func find() throws -> Device {
    guard device.root != nil else {
      throw UsageError(
        "it is not said which device is to be changed", hint: "name it with '--root DIR'")
    }
    return try device.find()
  }
}

/// One of these commands on one device.
struct AppChangeRun {
  let options: AppChangeOptions
  let device: Device
  let policy: CompiledPolicy
  /// The repository for the snapshot, where there is to be one and there is one.
  let repository: (repository: Repository, storage: LocalStorage)?

  /// Finds the device, makes good what was interrupted there, unless nothing is to be changed, and opens
  /// the repository.
  init(_ options: AppChangeOptions, _ console: Console) throws {
    self.options = options
    var found = try options.find()
    policy = try options.policy.compile(for: found, options.output, console)
    if options.dryRun {
      console.warn(ofInterruptedOn: found)
    } else if try console.recover(Recovery(found, policy: policy, isForced: options.force)) {
      found = try options.find()
    }
    device = found.stating(groupsOf: policy)
    repository = options.dryRun || options.noSnapshot ? nil : try Self.open(options.repository)
  }

  /// Opens the repository; nothing where nobody named one and the user's own is not there.
  static func open(
    _ options: RepositoryOptions
  ) throws -> (repository: Repository, storage: LocalStorage)? {
    let place: RepositoryPlace
    do { place = try options.place() } catch is UsageError { return nil }
    do {
      return try place.open()
    } catch let error as StoreError {
      if error.code == .noRepository, place.isStandard { return nil }
      throw error
    }
  }

  /// What is in the containers that an operation on an app is about.
  func scan(for app: BundleIdentifier) throws -> DeviceScan {
    DeviceScan.run(
      device, policy: policy,
      options: ScanOptions(
        destination: Destination(isUnencrypted: true),
        excluded: try repository.map { [try $0.storage.identity()] } ?? [])
    ) { AppChangePlan.isConcerned($0, by: app, on: device) }
  }

  /// The request with what the options say.
  func adapted(_ request: AppChangeRequest) -> AppChangeRequest {
    var request = request
    request.isForced = options.force
    request.savesFirst = !options.noSnapshot
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
    let text = AppChangeText(plan, console, isQuiet: options.output.quiet)
    if options.dryRun || plan.isSimulated && plan.refusals.isEmpty {
      try options.output.json ? console.result(plan.json) : text.tell()
      return plan.refusals.isEmpty ? .done : .failed
    }
    let counters = ProgressCounters()
    let report = try options.progress.run(counters, options.output) { isStopping in
      let saving = BackupRequest(
        program: Version.text, cache: Host.cacheFolder, isStopping: isStopping)
      return try body(
        AppChangeOperation(
          plan, saving: saving, to: repository?.repository, from: reader, counters: counters,
          isStopping: isStopping))
    }
    try options.output.json ? console.result(report.json(plan)) : text.report(report)
    return report.isComplete ? .done : .doneInPart
  }
}

internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Lifecycle
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// `sandboxctl backup`: one snapshot of each device.
struct BackupCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "backup",
      abstract: "Back up a device's apps, or any directory",
      usage: "sandboxctl backup [--root <dir>] [--repo <repo>] [<options>]",
      discussion: """
        Finds the device's apps, decides by policy what is kept, and stores it as a snapshot. What \
        did not change since the last backup is not read again, and what the repository has already \
        is not stored again. With --layout folder any directory is kept whole. \
        With --app only some apps are backed up, and 'latest' names their snapshot only where it is \
        asked for by the app.

        Without --root this user's own apps are backed up: ~/.var/app, ~/snap, ~/Library/Containers, \
        whichever exist, a snapshot each. Without any repository the user's own is made and used.

        Exit status 3 says that something the policy keeps could not be read; it is named, and \
        everything else is stored; or that an operation on the device was interrupted, so that what \
        is stored is a state in the middle of it, until 'recover' makes that good. 11 says that another backup of the same source is going on.

        With --json each device's report is a line; with --verbose, too, each second a line before \
        it tells how far the work is (event: progress).

        \(Examples.text([
          "sandboxctl backup --root device --repo repo",
          "sandboxctl backup --root device --repo repo --dry-run",
          "sandboxctl backup --layout folder --root device/data --repo repo",
          "sandboxctl backup --root device --repo repo --quiet --lock-wait 10m",
        ]))
        """)
  }

  @OptionGroup var device: DeviceOptions
  @OptionGroup var policy: PolicyOptions
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var part: BackupAppOptions

  @Option(
    name: .customLong("tag"),
    help: ArgumentHelp("A word to find the snapshot by; may be repeated.", valueName: "tag"))
  var tags: [String] = []

  @Option(
    help: ArgumentHelp(
      "Leave out files of more bytes, as 200M or 4GiB.", valueName: "size"))
  var excludeLargerThan: ByteSize?

  @Flag(help: "Enter what is mounted in the directories, too; else it is left out with a warning.")
  var crossMounts = false

  @Option(
    help: ArgumentHelp(
      "How much stays free on the repository's volume; else 5 % of it, at most 10 GiB.",
      valueName: "size"))
  var keepFree: ByteSize?

  @Flag(
    help: "Do not check whether the repository's volume has room for what is new; store what fits.")
  var noSpaceCheck = false

  @Option(
    help: ArgumentHelp(
      "How long to wait while another backup of the same source goes on, as 10m; else not.",
      valueName: "time"))
  var lockWait: TimeSpan?

  @Option(
    help: ArgumentHelp(
      "How long busy databases are waited for at the end, all together, as 30s; else 10s.",
      valueName: "time"))
  var sqliteTimeout: TimeSpan?

  @Option(
    help: ArgumentHelp(
      "How many files are read at a time, 1 to 256; else one for each processor.",
      valueName: "number"))
  var jobs: Int?

  @Option(
    help: ArgumentHelp(
      "Write what became of it into a file for Prometheus' textfile collector.",
      valueName: "file"),
    completion: .file(extensions: ["prom"]))
  var metrics: ByteString?

  @Option(
    help: ArgumentHelp(
      "Back up only then, and else end with 0: on-ac, while the machine has mains power.",
      valueName: "state"),
    completion: .list(PowerState.allCases.map(\.rawValue)))
  var when: PowerState?

  @Flag(name: .shortAndLong, help: "Say what would be stored and store nothing.")
  var dryRun = false

  @Flag(help: "Exit with 3 for warnings, too: all went well or it did not.")
  var strict = false

  @Flag(help: "Make no snapshot when nothing changed since the last, and exit with 4.")
  var failIfUnchanged = false

  @Flag(help: "Note in the snapshot that a schedule made it.")
  var scheduled = false

  @Flag(help: "Remind no more that the user's own repository is on the same disk as the data.")
  var acceptSameDisk = false

  @OptionGroup var list: ListOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    if when == .onMains, !Host.isOnMainsPower() {
      if !output.quiet { console.note("the machine runs on its battery: nothing is backed up now") }
      return .done
    }
    guard let metrics, !dryRun else { return try backUp(console).status }
    let record = BackupMetrics(file: metrics)
    do {
      let (results, status) = try backUp(console)
      record.write(results, status, console)
      return status
    } catch {
      record.write([], Failure(error).status, console)
      throw error
    }
  }

  private typealias Outcome = (results: [DeviceBackup.Result], status: ExitStatus)

  private func backUp(_ console: Console) throws -> Outcome {
    let jobs = try jobs.map(Self.checked)
    let choices = try device.choices()
    if dryRun { return ([], try showPlans(choices, console)) }
    let found = try holders(choices.map { choice in (choice, Result { try choice.find() }) })
    // What is no device makes no repository.
    if found.count == 1 { _ = try found[0].device.get() }
    let place = try repository.place()
    let (repository, storage, isNew) = try place.openOrMake()
    if isNew, !output.quiet {
      console.note(
        "made a repository in \(Paths.text(place.path)); it is not encrypted, and for this user alone "
          + "to read")
    }
    let run = DeviceBackup(
      command: self, repository: repository, storage: try storage.identity(), jobs: jobs)
    var results: [DeviceBackup.Result] = []
    for (choice, device) in found {
      results.append(try result(of: run, choice, device, isOnly: found.count == 1, console))
    }
    let isOnSameDisk = place.isStandard && results.contains { $0.isOnDisk(run.storage) }
    try tell(results, isOnSameDisk: isOnSameDisk, repository, console)
    return (results, ExitStatus.together(results.map(\.status)))
  }

  private typealias FoundDevice = (choice: DeviceChoice, device: Result<Device, any Error>)

  /// Those devices that have the apps which are asked for, and those that cannot be looked at, which
  /// may have them.
  private func holders(_ found: [FoundDevice]) throws -> [FoundDevice] {
    if part.apps.isEmpty { return found }
    let devices = found.compactMap { try? $0.device.get() }
    let holders = try part.names.holders(among: devices, isAll: devices.count == found.count)
    return found.filter { choice in
      guard let device = try? choice.device.get() else { return true }
      return holders.contains { $0.identity == device.identity }
    }
  }

  /// Backs one device up; where there are others a failure is told, and they follow all the same.
  private func result(
    of run: DeviceBackup, _ choice: DeviceChoice, _ found: Result<Device, any Error>,
    isOnly: Bool, _ console: Console
  ) throws -> DeviceBackup.Result {
    do {
      return try run.run(found.get(), again: choice.find, console)
    } catch {
      let failure = Failure(error)
      if isOnly || failure.status == .interrupted { throw error }
      console.failure(failure)
      return DeviceBackup.Result(root: choice.root, done: nil, status: failure.status)
    }
  }

  private func showPlans(_ choices: [DeviceChoice], _ console: Console) throws -> ExitStatus {
    var status = ExitStatus.done
    let own = DeviceBackup.ownDirectories(storage: (try? repository.place())?.identity)
    let devices = try holders(choices.map { choice in (choice, Result { try choice.find() }) })
    for (number, device) in devices.enumerated() {
      let found = try device.device.get()
      console.warn(ofInterruptedOn: found)
      let policy = try compile(for: found, console)
      let plan = try progress.run(ProgressCounters(), output) { isStopping in
        try self.plan(found, policy, excluding: own, knowing: nil, isStopping).plan
      }
      try plan.requireSense()
      if !plan.unreadable.isEmpty || strict && !plan.warnings.isEmpty { status = .doneInPart }
      if output.json {
        try console.result(plan.json)
        continue
      }
      if number > 0, !output.quiet { try console.result("") }
      try BackupText(plan, nil, listsAll: list.all)
        .write(console, isQuiet: output.quiet, isStrict: strict)
    }
    return status
  }

  /// The report of each device, and after all what to do next.
  private func tell(
    _ results: [DeviceBackup.Result], isOnSameDisk: Bool, _ stored: Repository, _ console: Console
  ) throws {
    for (number, result) in results.enumerated() {
      guard let (plan, report) = result.done else { continue }
      if output.json {
        try console.result(report.json(plan, isOnSameDisk: isOnSameDisk))
        continue
      }
      if number > 0, !output.quiet { try console.result("") }
      try BackupText(plan, report, listsAll: list.all)
        .write(console, isQuiet: output.quiet, isStrict: strict)
    }
    if output.json || output.quiet { return }
    if isOnSameDisk, !acceptSameDisk {
      console.note(
        "this repository is on the same disk as the data; 'sandboxctl init /media/you/disk "
          + "--plain' makes a better one")
    }
    let done = results.compactMap(\.done)
    let next = NextSteps(
      done, among: try stored.hostHeads().heads, suffix: repository.suffix)
    if let next { try console.result(next.line) }
  }

  func compile(for device: Device, _ console: Console) throws -> CompiledPolicy {
    let patterns = excludeLargerThan.map { [CommandLinePattern.excludeLargerThan($0.bytes)] } ?? []
    return try policy.compile(for: device, output, console, also: patterns)
  }

  func plan(
    _ device: Device, _ policy: CompiledPolicy, excluding: Set<FileIdentity>,
    knowing marks: ExclusionMarkCache?, _ isStopping: @escaping @Sendable () -> Bool
  ) throws -> (plan: BackupPlan, marks: ExclusionMarkCache?) {
    var options = ScanOptions(
      destination: Destination(isUnencrypted: true), excluded: excluding, isStopping: isStopping)
    options.crossesMounts = crossMounts
    if let jobs { options.workers = try Self.checked(jobs) }
    let device = device.stating(groupsOf: policy)
    let selection = try part.selection(of: device)
    let scan = DeviceScan.run(
      device, policy: policy, options: options, knowing: marks, where: selection.has)
    if scan.isInterrupted { throw LifecycleError.interrupted }
    return (BackupPlan.make(scan), scan.marks)
  }

  private static func checked(_ jobs: Int) throws -> Int {
    guard (1...256).contains(jobs) else {
      throw UsageError("'\(jobs)' is no number of jobs", hint: "give one from 1 to 256")
    }
    return jobs
  }
}

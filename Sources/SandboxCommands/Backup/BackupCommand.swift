internal import ArchiveStore
internal import ArgumentParser
internal import Backup
internal import DeviceTransaction
internal import PolicyEngine
internal import RemoteStorage
internal import SandboxModel
internal import SystemIO

/// `sandboxctl backup`: makes one snapshot of each device.
struct BackupCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "backup",
      abstract: "Back up a device's apps, or any directory",
      usage: "sandboxctl backup [--root <dir>] [--repo <repo>] [<options>]",
      discussion: """
        Selects the data of a device's apps by policy and stores it as a snapshot. Unchanged files \
        are not read again, and data that the repository has is not stored again. With --layout \
        folder any directory is backed up as a whole.

        Without --root, the user's own apps in ~/.var/app, ~/snap and ~/Library/Containers are \
        backed up, with a snapshot for each of these. If no repository is configured, the user's \
        own is used, and created if necessary. See sandboxctl-backup(1).

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
  @OptionGroup var part: AppOptions

  @Option(
    name: .customLong("tag"),
    help: ArgumentHelp(
      "Tags for the snapshot, separated by commas; may be repeated.", valueName: "tags"))
  var tags: [NewTags] = []

  @Option(
    help: ArgumentHelp(
      "Exclude files larger than this size, for example 200M or 4GiB.", valueName: "size"))
  var excludeLargerThan: ByteSize?

  @Flag(
    help: "Include mounted file systems in the directories (default: exclude and warn).")
  var crossMounts = false

  @Option(
    help: ArgumentHelp(
      "The space to keep free on the repository's volume (default: 5 % of it, at most 10 "
        + "GiB).",
      valueName: "size"))
  var keepFree: ByteSize?

  @Flag(
    help: "Do not check for free space on the repository's volume; store what fits.")
  var noSpaceCheck = false

  @Option(
    help: ArgumentHelp(
      "The time to wait for another backup of the same source, for example 10m (default: "
        + "do not wait).",
      valueName: "time"))
  var lockWait: TimeSpan?

  @Option(
    help: ArgumentHelp(
      "The total time to wait for busy databases, for example 30s (default: 10s).",
      valueName: "time"))
  var sqliteTimeout: TimeSpan?

  @Option(
    help: ArgumentHelp(
      "The number of files to read at once, 1 to 256 (default: one for each processor).",
      valueName: "number"))
  var jobs: Int?

  @Flag(
    help: ArgumentHelp(
      "Do not open files that data protection makes unreadable while the device is locked; "
        + "they wait for a backup without this option (exit status 3)."))
  var locked = false

  @OptionGroup var metrics: MetricsOptions

  @OptionGroup var conditions: Conditions

  @Flag(name: .shortAndLong, help: "Show what would be stored, without storing.")
  var dryRun = false

  @Flag(help: "Treat warnings as errors (exit status 3).")
  var strict = false

  @Flag(help: "Make no snapshot if nothing changed since the last one (exit status 4).")
  var failIfUnchanged = false

  @Flag(help: "Record in the snapshot that a schedule made it.")
  var scheduled = false

  @Flag(help: "Omit the note that the user's own repository is on the same disk as the data.")
  var acceptSameDisk = false

  @OptionGroup var list: ListOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if excludeLargerThan?.bytes == 0 {
      throw ValidationError(
        "'--exclude-larger-than 0' would store no file with content: omit it for no limit.")
    }
  }

  func run(_ console: Console) throws -> ExitStatus {
    if let obstacle = conditions.obstacle() {
      if !output.quiet { console.note("backup skipped: \(obstacle)") }
      return .done
    }
    if dryRun { return try backUp(console).status }
    return try metrics.record(of: "backup", console) {
      let (results, status) = try backUp(console)
      return (status, { $0.add(results) })
    }
  }

  private func backUp(
    _ console: Console
  ) throws -> (results: [DeviceResult], status: ExitStatus) {
    if let jobs { try Self.check(jobs) }
    let choices = try device.choices()
    if dryRun { return ([], try showPlans(choices, console)) }
    let found = try part.names.holders(
      choices.map { choice in (choice, Result { try choice.find() }) })
    // Without a device no repository is created.
    if found.count == 1 { _ = try found[0].device.get() }
    let choice = try repository.choice(for: console)
    let opened = try choice.openOrMake(console)
    let repository = opened.repository
    if opened.isNew, !output.quiet {
      console.note(
        "created a repository in \(Paths.text(choice.location.text)); it is not encrypted, and only this "
          + "user can read it")
    }
    if repository.lacksOlderKey, !output.quiet {
      console.note(
        "the identity may not restore all of the new snapshots: it does not open data from before "
          + "the last 'key rotate'; 'sandboxctl key rewrap' with the passphrase, or all lines of the "
          + "recovery key, makes it readable for all recipients")
    }
    let storage = try opened.storage.directoryIdentity()
    var results: [DeviceResult] = []
    for (choice, device) in found {
      do {
        results.append(
          try backUp(
            device.get(), to: repository, storage: storage, again: choice.find, console))
      } catch {
        // If there are other devices, the backup continues with the next one.
        let failure = Failure(error)
        if found.count == 1 || failure.status == .interrupted { throw error }
        console.failure(failure)
        results.append(DeviceResult(root: choice.root, done: nil, status: failure.status))
      }
    }
    let isOnSameDisk = choice.isStandard && results.contains { $0.isOnDisk(storage) }
    try show(results, isOnSameDisk: isOnSameDisk, in: repository, console)
    return (results, ExitStatus.together(results.map(\.status)))
  }

  /// Backs up one device. After waiting for another run, `again` finds it again.
  private func backUp(
    _ device: Device, to repository: Repository, storage: FileIdentity?,
    again: () throws -> Device, _ console: Console
  ) throws -> DeviceResult {
    let backup = DeviceBackup(to: repository, storage: storage, cache: Host.cacheDirectory)
    let source = try source(device, for: repository.destination, console)
    let counters = ProgressCounters()
    let outcome = try progress.run(counters, output) { isStopping in
      try backup.run(
        source, request(counters, isStopping), waiting: lockWait?.seconds ?? 0, again: again,
        didFindRisk: console.warning)
    }
    console.show(outcome.interrupted, of: outcome.plan.device, all: list.all)
    console.warn(ofRefused: outcome.report.snapshot, in: repository)
    let wasInterrupted = outcome.interrupted.isPending
    let status = wasInterrupted ? .doneInPart : status(of: outcome.report)
    return DeviceResult(root: outcome.plan.device.root, done: outcome, status: status)
  }

  private func source(
    _ device: Device, for destination: Destination, _ console: Console
  ) throws -> BackupSource {
    let patterns = excludeLargerThan.map { [CommandLinePattern.excludeLargerThan($0.bytes)] } ?? []
    var source = BackupSource(
      device, policy: try policy.compile(for: device, output, console, also: patterns),
      for: part.bundles.deciding(for: destination))
    source.apps = part.names
    source.crossesMounts = crossMounts
    source.isLocked = locked
    source.workers = jobs
    return source
  }

  private func request(
    _ counters: ProgressCounters, _ isStopping: @escaping @Sendable () -> Bool
  ) -> BackupRequest {
    var request = BackupRequest(
      reason: scheduled ? .scheduled : .manual, tags: tags.flatMap(\.tags), program: Version.text,
      cache: Host.cacheDirectory, keepFree: keepFree.map { UInt64($0.bytes) },
      skipsUnchanged: failIfUnchanged, isStopping: isStopping, counters: counters)
    if let jobs { request.workers = jobs }
    if let sqliteTimeout { request.databaseTimeout = sqliteTimeout.seconds }
    request.checksSpace = !noSpaceCheck
    request.verifiesBundles = part.verifyBundles
    return request
  }

  private func status(of report: BackupReport) -> ExitStatus {
    if !report.isComplete || report.emptied != nil || strict && !report.warnings.isEmpty {
      return .doneInPart
    }
    return report.isUnchanged ? .nothingToDo : .done
  }

  private func showPlans(_ choices: [DeviceOptions.Choice], _ console: Console) throws -> ExitStatus
  {
    var status = ExitStatus.done
    let choice = try? repository.choice()
    let own = BackupSource.ownDirectories(storage: choice?.identity, cache: Host.cacheDirectory)
    let destination = repository.knownDestination
    let devices = try part.names.holders(
      choices.map { choice in (choice, Result { try choice.find() }) })
    for (number, device) in devices.enumerated() {
      let found = try device.device.get()
      console.warn(ofInterruptedOn: found)
      let source = try source(found, for: destination, console)
      let plan = try progress.run(ProgressCounters(), output) { isStopping in
        try source.plan(excluding: own, isStopping: isStopping)
      }
      try plan.requireUseful()
      if !plan.unreadable.isEmpty || strict && !plan.warnings.isEmpty { status = .doneInPart }
      let protected = locked ? plan.protectedTotals() : nil
      if output.json {
        try console.result(plan.json(protected))
        continue
      }
      if number > 0, !output.quiet { try console.result("") }
      try Text(plan, nil, listsAll: list.all)
        .write(console, isQuiet: output.quiet, isStrict: strict)
      if let protected, !output.quiet { Text.note(ofProtected: protected, console) }
    }
    return status
  }

  /// Prints the report for each device, then the next steps.
  private func show(
    _ results: [DeviceResult], isOnSameDisk: Bool, in stored: Repository, _ console: Console
  ) throws {
    for (number, result) in results.enumerated() {
      guard let done = result.done else { continue }
      if output.json {
        try console.result(done.report.json(done.plan, isOnSameDisk: isOnSameDisk))
        continue
      }
      if number > 0, !output.quiet { try console.result("") }
      try Text(done.plan, done.report, listsAll: list.all)
        .write(console, isQuiet: output.quiet, isStrict: strict)
    }
    if output.json || output.quiet { return }
    if isOnSameDisk, !acceptSameDisk {
      console.note(
        "this repository is on the same disk as the data; 'sandboxctl init /media/you/disk "
          + "--passphrase' creates one on another disk")
    }
    // Without its key nothing can be restored from here.
    guard stored.isReadable else { return }
    let done = results.compactMap(\.done)
    let next = NextSteps(done, suffix: repository.suffix)
    if let next { try console.result(next.line) }
  }

  private static func check(_ jobs: Int) throws {
    guard (1...256).contains(jobs) else {
      throw UsageError(
        .invalidValue, "'\(jobs)' is not a valid number of jobs",
        hint: "give a number from 1 to 256")
    }
  }
}

extension BackupCommand {
  /// The result for one device.
  struct DeviceResult {
    let root: ByteString
    /// The plan and the report; nil if the backup failed.
    let done: DeviceBackup.Outcome?
    let status: ExitStatus

    /// Whether the device and a directory are on the same disk, as far as the system distinguishes
    /// disks.
    func isOnDisk(_ directory: FileIdentity?) -> Bool {
      guard let directory else { return false }
      return (try? Directory.open(path: root).status().identity.device) == directory.device
    }
  }
}

extension BackupCommand {
  /// The apps to back up.
  struct AppOptions: ParsableArguments {
    @Option(
      name: .customLong("app"),
      help: .app("Back up only this app and the groups it shares", addition: "may be repeated"))
    var apps: [ByteString] = []

    @Flag(
      help:
        "Read bundles with new UUIDs even if version, names, sizes and times did not change.")
    var verifyBundles = false

    @OptionGroup var bundles: BundleOptions

    var names: AppNames { AppNames(apps) }
  }
}

extension MetricsText {
  /// Adds the metrics of the devices of a backup.
  mutating func add(_ results: [BackupCommand.DeviceResult]) {
    add(
      "device_exit_code", help: "Exit status for this device alone.",
      samples: results.map { (Self.labels($0), "\($0.status.rawValue)") })
    for (name, help, value) in Self.perDevice {
      let samples = results.compactMap { result in
        result.done.map { (Self.labels(result), "\(value($0.report))") }
      }
      add(name, help: help, samples: samples)
    }
  }

  private typealias Value = @Sendable (BackupReport) -> UInt64

  private static let perDevice: [(String, String, Value)] = [
    ("device_files", "Files in the snapshot.", { UInt64($0.files) }),
    ("device_bytes", "Bytes of the files in the snapshot.", { $0.bytes }),
    ("device_stored_bytes", "Bytes added to the repository.", { $0.storedBytes }),
    (
      "device_failures", "Entries that the policy keeps and that could not be read.",
      { UInt64($0.unreadable.count) }
    ),
    (
      "device_waiting", "Files not read because the device was locked.",
      { UInt64($0.waiting.count) }
    ),
    (
      "device_warnings", "Entries stored with a warning.",
      { UInt64($0.warnings.count) }
    ),
    (
      "device_databases_as_they_stood",
      "Databases stored without locks as they were in use, without a log, or undecided.",
      { UInt64($0.databasesUnlocked.count) }
    ),
  ]

  private static func labels(_ result: BackupCommand.DeviceResult) -> [(String, String)] {
    let layout = result.done?.plan.device.layout.rawValue ?? ""
    return [("root", result.root.utf8 ?? result.root.description), ("layout", layout)]
  }
}

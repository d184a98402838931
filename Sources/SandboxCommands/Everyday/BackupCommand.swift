internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Lifecycle
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// `sandboxctl backup`: one snapshot of a device.
struct BackupCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "backup",
      abstract: "Back up a device's apps, or any folder",
      usage: "sandboxctl backup [--root <dir>] [--repo <repo>] [<options>]",
      discussion: """
        Finds the device's apps, decides by policy what is kept, and stores it as a snapshot. What \
        did not change since the last backup is not read again, and what the repository has already \
        is not stored again. With --layout folder any folder is kept whole. \
        With --app only some apps are backed up, and 'latest' names their snapshot only where it is \
        asked for by the app.

        Exit status 3 says that something the policy keeps could not be read; it is named, and \
        everything else is stored. 11 says that another backup of the same source is going on.

        \(Examples.text([
          "sandboxctl backup --root device --repo repo",
          "sandboxctl backup --root device --repo repo --dry-run",
          "sandboxctl backup --layout folder --root device/data --repo repo",
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

  @Option(
    help: ArgumentHelp(
      "How much stays free on the repository's volume; else 5 % of it, at most 10 GiB.",
      valueName: "size"))
  var keepFree: ByteSize?

  @Flag(name: .shortAndLong, help: "Say what would be stored and store nothing.")
  var dryRun = false

  @Flag(help: "Exit with 3 for warnings, too: all went well or it did not.")
  var strict = false

  @Flag(help: "Make no snapshot when nothing changed since the last, and exit with 4.")
  var failIfUnchanged = false

  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let device = try device.find()
    let patterns = excludeLargerThan.map { [CommandLinePattern.excludeLargerThan($0.bytes)] } ?? []
    let compiled = try policy.compile(for: device, output, console, also: patterns)
    let found = device.stating(groupsOf: compiled)
    let selection = try part.selection(of: found)
    if dryRun { return try showPlan(plan(found, compiled, selection, excluding: []), console) }
    let (repository, storage) = try repository.open()
    let own = [try storage.identity()] + cacheIdentities
    let counters = ProgressCounters()
    let (plan, report) = try progress.run(counters, output) { isStopping in
      let plan = self.plan(found, compiled, selection, excluding: Set(own))
      var request = BackupRequest(
        tags: tags, program: Version.text, cache: Host.cacheFolder,
        keepFree: keepFree.map { UInt64($0.bytes) }, skipsUnchanged: failIfUnchanged,
        isStopping: isStopping, counters: counters)
      (request.scope, request.isPart) = (selection.scope, selection.isPart)
      request.verifiesBundles = part.verifyBundles
      return (plan, try BackupOperation(plan, to: repository, request).run())
    }
    if output.json {
      try console.result(report.json(plan))
    } else {
      try BackupText(plan, report).write(console, isQuiet: output.quiet)
    }
    return status(of: report)
  }

  private func status(of report: BackupReport) -> ExitStatus {
    if !report.isComplete || strict && !report.warnings.isEmpty { return .doneInPart }
    return report.isUnchanged ? .nothingToDo : .done
  }

  /// The program's caches, which are never part of a backup.
  private var cacheIdentities: [FileIdentity] {
    guard let cache = Host.cacheFolder?.appending("sandboxctl"),
      let identity = try? Folder.open(path: cache).status().identity
    else { return [] }
    return [identity]
  }

  private func plan(
    _ device: Device, _ policy: CompiledPolicy, _ selection: AppSelection,
    excluding: Set<FileIdentity>
  ) -> BackupPlan {
    let options = ScanOptions(
      destination: Destination(isUnencrypted: true), excluded: excluding)
    return BackupPlan.make(
      DeviceScan.run(device, policy: policy, options: options, where: selection.has))
  }

  private func showPlan(_ plan: BackupPlan, _ console: Console) throws -> ExitStatus {
    if output.json {
      try console.result(plan.json)
    } else {
      try BackupText(plan, nil).write(console, isQuiet: output.quiet)
    }
    return .done
  }
}

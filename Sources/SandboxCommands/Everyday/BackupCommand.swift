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
        the repository has already is not stored again. With --layout folder any folder is kept \
        whole.

        Exit status 3 says that something the policy keeps could not be read; it is named, and \
        everything else is stored.

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

  @Option(
    name: .customLong("tag"),
    help: ArgumentHelp("A word to find the snapshot by; may be repeated.", valueName: "tag"))
  var tags: [String] = []

  @Flag(name: .shortAndLong, help: "Say what would be stored and store nothing.")
  var dryRun = false

  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let found = try device.find()
    let compiled = try policy.compile(for: found, output, console)
    if dryRun { return try showPlan(plan(found, compiled, excluding: []), console) }
    let (repository, storage) = try repository.open()
    let plan = plan(found, compiled, excluding: [try storage.identity()])
    let request = BackupRequest(tags: tags, program: Version.text)
    let report = try BackupOperation(plan, to: repository, request).run()
    if output.json {
      try console.result(report.json(plan))
    } else {
      try BackupText(plan, report).write(console, isQuiet: output.quiet)
    }
    return report.isComplete ? .done : .doneInPart
  }

  private func plan(
    _ device: Device, _ policy: CompiledPolicy, excluding: Set<FileIdentity>
  ) -> BackupPlan {
    let options = ScanOptions(
      destination: Destination(isUnencrypted: true), excluded: excluding)
    return BackupPlan.make(DeviceScan.run(device, policy: policy, options: options))
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

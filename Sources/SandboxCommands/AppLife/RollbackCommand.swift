internal import AppUpdate
internal import ArchiveStore
internal import ArgumentParser

/// `sandboxctl rollback APP --root DIR`: restores the version before the last update.
struct RollbackCommand: AppChangeCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "rollback",
      abstract: "Roll an app back to the version before its last update",
      usage: "sandboxctl rollback <app> --root <dir> [--data <choice>] [<options>]",
      discussion: """
        Restores the app's bundle and data from the snapshot that the last update made. Data that \
        is never backed up, such as caches, does not change; nor do groups that other apps share, \
        unless --with-groups is given. A snapshot is made first, and replaced files move to the \
        trash.

        Refused if documents or unclassified files changed since the update, until --data says \
        which data to keep. See sandboxctl-rollback(1).

        On flatpak and snap the command only reports what the platform's own program does.

        \(Examples.text([
          "sandboxctl rollback notebook --root device --repo repo --dry-run",
          "sandboxctl rollback notebook --root device --repo repo --data merge",
        ]))
        """)
  }

  @OptionGroup var named: AppArgument

  @Option(
    help: ArgumentHelp(
      "The data of the app after the rollback: before, now or merge (default: refuse if "
        + "data changed since the update).", valueName: "choice"),
    completion: .list(AppChangeRequest.DataChoice.allCases.map(\.rawValue)), transform: Self.choice)
  var data: AppChangeRequest.DataChoice?

  @Flag(help: "Include the app's groups that other apps share.")
  var withGroups = false

  @OptionGroup var change: AppChangeOptions
  @OptionGroup var device: DeviceOptions
  @OptionGroup var policy: PolicyOptions
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var list: ListOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  private static func choice(_ word: String) throws -> AppChangeRequest.DataChoice {
    guard let choice = AppChangeRequest.DataChoice(rawValue: word) else {
      throw ValidationError("there is no choice '\(word)': choose before, now or merge")
    }
    return choice
  }

  func run(_ console: Console) throws -> ExitStatus {
    let run = try AppChangeRun(self, console)
    var request = AppChangeRequest(
      .rollback, of: try named.find(on: run.device))
    (request.data, request.withGroups) = (data, withGroups)
    let opened =
      try run.isSimulated ? nil : run.repository ?? AppChangeRun.open(repository, console)
    let source = try opened.map { opened in
      (repository: opened.repository, reader: try opened.repository.beginCarefulReading())
    }
    let plan = try progress.plan("rollback", output) { isStopping in
      try run.preparation.rollbackPlan(
        request, savingTo: run.repository?.storage, at: run.destination, from: source,
        heads: opened?.repository.hostHeadCache, isStopping: isStopping)
    }
    return try run.finish(plan, console, from: source?.reader) { try $0.run() }
  }
}

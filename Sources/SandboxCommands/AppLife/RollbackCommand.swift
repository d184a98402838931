internal import ArchiveStore
internal import ArgumentParser
internal import Lifecycle
internal import SandboxModel
internal import SystemIO

/// `sandboxctl rollback APP --root DIR`: goes back to the version before the last update.
struct RollbackCommand: AppChangeCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "rollback",
      abstract: "Go back to the version of an app before its last update",
      usage: "sandboxctl rollback <app> --root <dir> [--data <choice>] [<options>]",
      discussion: """
        Brings back, from the snapshot that the update made (reason pre-update), the bundle of before \
        and the data of before, as far as backups hold it; what is never backed up, as caches, stays \
        as it is. Groups that other apps share stay, but with --with-groups. First a snapshot is made \
        of what is there (reason pre-rollback), and what gives way goes to the trash. What the update \
        dropped and no backup holds comes back from the trash, as long as it is there.

        Where documents, or what no rule knows, were made or changed since the update (their bytes \
        count, not their times), it is refused with their names until --data says what is wanted: 'before' (as before the update), 'now' \
        (the data stays as it is), 'merge' (only what is missing now or is older comes back).

        On flatpak and snap it only tells what the platform's own program does with the data.

        \(Examples.text([
          "sandboxctl rollback notebook --root device --repo repo --dry-run",
          "sandboxctl rollback notebook --root device --repo repo --data merge",
        ]))
        """)
  }

  @OptionGroup var named: AppArgument

  @Option(
    help: ArgumentHelp(
      "Which data the app has afterwards: before, now or merge.", valueName: "choice"),
    completion: .list(DataChoice.allCases.map(\.rawValue)), transform: Self.choice)
  var data: DataChoice?

  @Flag(help: "Take the groups of the app along, too, that other apps share.")
  var withGroups = false

  @OptionGroup var change: AppChangeOptions
  @OptionGroup var device: DeviceOptions
  @OptionGroup var policy: PolicyOptions
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  private static func choice(_ word: String) throws -> DataChoice {
    guard let choice = DataChoice(rawValue: word) else {
      throw ValidationError("there is no choice '\(word)': choose before, now or merge")
    }
    return choice
  }

  /// The snapshots that updates made.
  private static func updates(in repository: Repository) throws(StoreError) -> [StoredSnapshot] {
    try repository.snapshots(cache: repository.hostHeadCache) { $0.reason == .preUpdate }.snapshots
  }

  func run(_ console: Console) throws -> ExitStatus {
    let run = try AppChangeRun(self, console)
    var request = AppChangeRequest(
      .rollback, of: try named.find(on: run.device))
    (request.data, request.withGroups) = (data, withGroups)
    let opened = try run.repository ?? AppChangeRun.open(repository)
    let reader = try opened?.repository.beginCarefulReading()
    let stored = try opened.flatMap { opened in
      AppChangePlan.stateBefore(
        request.app, on: run.device, among: try Self.updates(in: opened.repository))
    }
    let plan = try AppChangePlan.rollback(
      run.scan(for: request.app), run.adapted(request), to: stored, from: reader)
    return try run.finish(plan, console, from: reader) { try $0.run() }
  }
}

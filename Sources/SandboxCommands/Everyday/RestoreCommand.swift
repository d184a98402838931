internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Lifecycle
internal import SystemIO

/// `sandboxctl restore SNAP[:PATH] --to DIR`.
struct RestoreCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "restore",
      abstract: "Restore a snapshot, or a part of it",
      usage: "sandboxctl restore <snap[:path]> --to <dir> [<options>]",
      discussion: """
        \(SnapshotPath.help)

        What PATH names becomes DIR: a folder's content lies directly in DIR. Into a DIR that is new \
        or an empty folder everything is verified before it appears there, all at once. Into one that \
        holds something it is merged, file by file, each whole: --overwrite says which of the files \
        that are there give way. if-changed: those that differ in kind, size, time, mode, owner, \
        attributes or in what a link points to; if-newer: those older than in the snapshot; always: \
        all; never: none. What DIR has and the snapshot lacks stays, but with --delete it goes; even \
        then stay other volumes, the repository, and what the snapshot says it left out or could not \
        read. A folder in the place of a file stays, too, unless it is empty or --delete is given. No \
        link in DIR is followed.

        Exit status 13 names damaged files, which are left out; 3 what could not be made; 130 says \
        that it was interrupted.

        \(Examples.text([
          "sandboxctl restore latest --to back --repo repo",
          "sandboxctl restore latest:apps --to apps --repo repo --dry-run",
          "sandboxctl restore latest --to back --repo repo --overwrite if-changed",
        ]))
        """)
  }

  @Argument(help: ArgumentHelp("The snapshot and a path in it.", valueName: "snap[:path]"))
  var what: String

  @Option(help: ArgumentHelp("What PATH is to become.", valueName: "dir"))
  var to: String

  @Option(
    help: ArgumentHelp(
      "What gives way where DIR holds something: if-changed, if-newer, always or never.",
      valueName: "mode"))
  var overwrite: String?

  @Flag(help: "Remove what DIR has and the snapshot lacks.")
  var delete = false

  @Flag(name: .shortAndLong, help: "Say what would be done and do nothing.")
  var dryRun = false

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let place = try SnapshotPath(what)
    let mode = try overwriteMode()
    let (repository, storage) = try repository.open()
    let stored = try place.find(in: repository)
    let request = RestoreRequest(
      path: try place.logicalPath(in: stored.snapshot), target: ByteString(to), overwrite: mode,
      deletes: delete, protected: [try storage.identity()])
    let reader = try repository.beginReading()
    defer { console.warn(of: reader.remarks) }
    let plan = try RestorePlan.make(stored, request, from: reader)
    if dryRun {
      try output.json ? console.result(plan.json) : plan.tell(console)
      return Self.status(damaged: plan.damaged, failed: plan.blocked)
    }
    let counters = ProgressCounters()
    let report = try progress.run(counters, output) { isStopping in
      try RestoreOperation(plan, from: reader, counters: counters, isStopping: isStopping).run()
    }
    if output.json {
      try console.result(report.json(plan))
    } else {
      try report.tell(plan, console, quiet: output.quiet)
    }
    return Self.status(damaged: report.damaged, failed: report.failed)
  }

  private func overwriteMode() throws -> OverwriteMode? {
    guard let overwrite else {
      guard delete else { return nil }
      throw UsageError(
        "'--delete' needs to know what becomes of what is there",
        hint: "add '--overwrite if-changed', or another mode")
    }
    guard let mode = OverwriteMode(rawValue: overwrite) else {
      let modes = OverwriteMode.allCases.map(\.rawValue).joined(separator: ", ")
      throw UsageError(
        "there is no mode '\(ByteString(overwrite))'", hint: "choose one of \(modes)")
    }
    return mode
  }

  private static func status(damaged: [PathRemark], failed: [PathRemark]) -> ExitStatus {
    if !damaged.isEmpty { return .damaged }
    return failed.isEmpty ? .done : .doneInPart
  }
}

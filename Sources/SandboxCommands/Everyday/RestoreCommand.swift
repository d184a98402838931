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
      abstract: "Restore a snapshot, or a part of it, to a new place",
      usage: "sandboxctl restore <snap[:path]> --to <dir> [<options>]",
      discussion: """
        SNAP is at least four characters of an id, latest, or latest~2; PATH is a logical path. What \
        PATH names becomes DIR, which must be new or an empty folder: a folder's content lies \
        directly in DIR. Everything is verified before it appears there.

        Exit status 13 names damaged files, which are left out; 3 what could not be made.

        \(Examples.text([
          "sandboxctl restore latest --to back --repo repo",
          "sandboxctl restore latest:apps --to apps --repo repo --dry-run",
        ]))
        """)
  }

  @Argument(help: ArgumentHelp("The snapshot and a path in it.", valueName: "snap[:path]"))
  var what: String

  @Option(help: ArgumentHelp("What PATH is to become: a new or empty folder.", valueName: "dir"))
  var to: String

  @Flag(name: .shortAndLong, help: "Say what would be restored and restore nothing.")
  var dryRun = false

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let place = try SnapshotPath(what)
    let repository = try repository.open().repository
    let stored = try repository.snapshot(matching: place.snapshot)
    let reader = try repository.beginReading()
    let plan = try RestorePlan.make(stored, path: place.path, to: ByteString(to), from: reader)
    if dryRun {
      try output.json
        ? console.result(plan.json) : console.result("would restore \(plan.totals.text)")
      return .done
    }
    let report = try RestoreOperation(plan, from: reader).run()
    try tell(report, plan, console)
    if !report.damaged.isEmpty { return .damaged }
    return report.isComplete ? .done : .doneInPart
  }

  private func tell(_ report: RestoreReport, _ plan: RestorePlan, _ console: Console) throws {
    if output.json { return try console.result(report.json(plan)) }
    for remark in report.damaged { console.warning("damaged: \(remark.path): \(remark.remark)") }
    for remark in report.failed {
      console.warning("not restored: \(remark.path): \(remark.remark)")
    }
    if output.quiet { return }
    let id = plan.snapshot.id.hex.prefix(8)
    try console.result(
      "restored \(report.restored.text) from snapshot \(id) to \(plan.target) "
        + "in \(Times.duration(report.seconds))")
    if report.ownersNotSet > 0 {
      console.note(
        "\(Sizes.count(report.ownersNotSet, "entry", plural: "entries")) belonged to another user "
          + "and are yours now: only the superuser can give them back")
    }
  }
}

extension RestoreTotals {
  /// What there is: "3.1 GiB in 41,209 files, 812 folders, 14 links".
  var text: String {
    var parts = [
      "\(Sizes.text(bytes)) in \(Sizes.count(files, "file"))", Sizes.count(folders, "folder"),
    ]
    if links > 0 { parts.append(Sizes.count(links, "link")) }
    if specials > 0 { parts.append(Sizes.count(specials, "special file")) }
    return parts.joined(separator: ", ")
  }
}

internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// `sandboxctl snapshots [list]`: lists the snapshots.
struct SnapshotsListCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "list",
      abstract: "List the snapshots of a repository",
      usage: "sandboxctl snapshots [list] [--app <app>] [--tag <tag>] [--host <host>] [<options>]",
      discussion: """
        Lists the snapshots, oldest first. A snapshot that cannot be read is reported, and the \
        exit status is 13. Snapshots that were read before are listed from a cache if their files \
        did not change; 'sandboxctl check' reads all of them.

        The column 'reason' is shown if some snapshots were not made by hand, and 'scope' if some \
        are not of a whole device. 'latest' names only snapshots of a whole device, unless an app \
        is given.

        \(Examples.text([
          "sandboxctl snapshots --app notebook --last 3 --repo repo"
        ]))
        """)
  }

  @Option(
    help: ArgumentHelp(
      "List only snapshots with this app: its identifier, the last component of it, or "
        + "its display name.",
      valueName: "app"))
  var app: String?

  @Option(
    name: .customLong("tag"),
    help: ArgumentHelp(
      "List only snapshots with this tag; if repeated, with one of the tags.", valueName: "tag"))
  var tags: [String] = []

  @Option(help: ArgumentHelp("List only snapshots of this host.", valueName: "host"))
  var host: String?

  @Option(
    help: ArgumentHelp(
      "The number of newest snapshots to list (default: all).", valueName: "number"))
  var last: Int?

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    if let last, last < 1 {
      throw UsageError("'--last \(last)' selects no snapshot", hint: "give a number of 1 or more")
    }
    let listing = try repository.open().repository.hostHeads()
    let meant = listing.heads.filter(isMeant)
    let shown = Array(meant.suffix(last ?? meant.count))
    if output.json {
      for head in shown { try console.result(head.json) }
    } else if shown.isEmpty {
      if !output.quiet { console.note(Self.none(of: listing)) }
    } else {
      for line in SnapshotsTable(shown).lines { try console.result(line) }
    }
    for error in listing.damaged { console.warning(error.description) }
    return listing.damaged.isEmpty ? .done : .damaged
  }

  private func isMeant(_ snapshot: SnapshotHead) -> Bool {
    if let host, snapshot.host != host { return false }
    if !tags.isEmpty, !tags.contains(where: snapshot.tags.contains) { return false }
    if let app, !snapshot.apps.contains(where: { $0.isCalled(app) }) { return false }
    return true
  }

  private static func none(of listing: SnapshotHeads) -> String {
    listing.heads.isEmpty
      ? "there is no snapshot yet: 'sandboxctl backup' makes one"
      : "none of \(Sizes.count(listing.heads.count, "snapshot")) matches"
  }
}

internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// `sandboxctl snapshots [list]`: the snapshots, the oldest first.
struct SnapshotsListCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "list",
      abstract: "List the snapshots of a repository",
      usage: "sandboxctl snapshots [list] [--app <app>] [--tag <tag>] [--host <host>] [<options>]",
      discussion: """
        The oldest first. A snapshot that cannot be read is named, and the exit status is 13. One \
        that was read before and has not changed since is not read again: 'sandboxctl check' reads \
        all.

        Where some were not made by hand there is a column that says why each was: manual, \
        scheduled, pre-restore. Where some are not of a whole device there is one that says of \
        which apps they are; only those of a device are 'latest', unless an app is named.

        With --json each snapshot is a line: id, time, host, user, device, layout, root, scope, \
        reason, policy, apps, files, bytes, stored_bytes, parent, tags.

        \(Examples.text([
          "sandboxctl snapshots --app notebook --last 3 --repo repo"
        ]))
        """)
  }

  @Option(
    help: ArgumentHelp(
      "Only those that hold this app: its identifier, the last part of it, or its name.",
      valueName: "app"))
  var app: String?

  @Option(
    name: .customLong("tag"),
    help: ArgumentHelp("Only those with this tag; repeated: with one of them.", valueName: "tag"))
  var tags: [String] = []

  @Option(help: ArgumentHelp("Only those of this host.", valueName: "host"))
  var host: String?

  @Option(help: ArgumentHelp("Only the newest so many of the others.", valueName: "number"))
  var last: Int?

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    if let last, last < 1 {
      throw UsageError("'--last \(last)' means no snapshot", hint: "give a number from 1 on")
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
      : "none of \(Sizes.count(listing.heads.count, "snapshot")) is so"
  }
}

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
        The oldest first. A snapshot that cannot be read is named, and the exit status is 13.

        With --json each snapshot is a line: id, time, host, user, device, layout, root, reason, \
        policy, apps, files, bytes, stored_bytes, parent, tags.

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
    let listing = try repository.open().repository.snapshots()
    let meant = listing.snapshots.filter { isMeant($0.snapshot) }
    let shown = Array(meant.suffix(last ?? meant.count))
    if output.json {
      for stored in shown { try console.result(stored.json) }
    } else if shown.isEmpty {
      if !output.quiet { console.note(Self.none(of: listing)) }
    } else {
      for line in Self.table(shown).lines { try console.result(line) }
    }
    for error in listing.damaged { console.warning(error.description) }
    return listing.damaged.isEmpty ? .done : .damaged
  }

  private func isMeant(_ snapshot: Snapshot) -> Bool {
    if let host, snapshot.host != host { return false }
    if !tags.isEmpty, !tags.contains(where: snapshot.tags.contains) { return false }
    if let app, !snapshot.apps.contains(where: { $0.isCalled(app) }) { return false }
    return true
  }

  private static func none(of listing: SnapshotListing) -> String {
    listing.snapshots.isEmpty
      ? "there is no snapshot yet: 'sandboxctl backup' makes one"
      : "none of \(Sizes.count(listing.snapshots.count, "snapshot")) is so"
  }

  private static func table(_ snapshots: [StoredSnapshot]) -> Table {
    var table = Table([
      ("id", .left), ("time", .left), ("device", .left), ("policy", .left), ("apps", .right),
      ("files", .right), ("size", .right), ("stored", .right), ("tags", .left),
    ])
    for stored in snapshots {
      let snapshot = stored.snapshot
      table.add([
        String(stored.id.hex.prefix(8)), Times.text(snapshot.time),
        "\(snapshot.user)@\(snapshot.host):\(snapshot.device.root)", snapshot.policy.name,
        Sizes.count(snapshot.apps.count), Sizes.count(Int(snapshot.totals.files)),
        Sizes.text(snapshot.totals.bytes), Sizes.text(snapshot.totals.stored),
        snapshot.tags.joined(separator: ","),
      ])
    }
    return table
  }
}

internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// `sandboxctl snapshots`: what backups there are.
struct SnapshotsCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "snapshots",
      abstract: "List the snapshots of a repository",
      discussion: """
        The oldest first. A snapshot that cannot be read is named, and the exit status is 13.

        \(Examples.text(["sandboxctl snapshots --repo repo"]))
        """)
  }

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let listing = try repository.open().repository.snapshots()
    if output.json {
      for stored in listing.snapshots { try console.result(stored.json) }
    } else if listing.snapshots.isEmpty {
      if !output.quiet { console.note("there is no snapshot yet: 'sandboxctl backup' makes one") }
    } else {
      for line in Self.table(listing.snapshots).lines { try console.result(line) }
    }
    for error in listing.damaged {
      console.warning(error.description)
    }
    return listing.damaged.isEmpty ? .done : .damaged
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

internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SnapshotQueries
internal import SystemIO

extension SnapshotsCommand {
  /// `sandboxctl snapshots pin SNAP…`: exempts snapshots from removal.
  struct Pin: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "pin",
        abstract: "Exempt snapshots from removal",
        usage: "sandboxctl snapshots pin <snap> ... [<options>]",
        discussion: """
          A pinned snapshot is never removed by 'sandboxctl forget', neither by rules nor by name, \
          until 'sandboxctl snapshots unpin'. 'sandboxctl snapshots' shows which ones are pinned.

          \(Examples.text(["sandboxctl snapshots pin latest --repo repo"]))
          """)
    }

    @Argument(help: ArgumentHelp("The snapshots.", valueName: "snap"))
    var snapshots: [String]

    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      let opened = try repository.open().repository
      let finder = SnapshotFinder(opened, console)
      let ids = try snapshots.map { try finder.find(SnapshotName($0)).id }
      try output.show(ids, changed: try opened.pin(ids), isPinned: true, console)
      return .done
    }
  }

  /// `sandboxctl snapshots unpin SNAP…`: allows the removal of pinned snapshots again.
  struct Unpin: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "unpin",
        abstract: "Allow the removal of pinned snapshots again",
        usage: "sandboxctl snapshots unpin <snap> ... [<options>]",
        discussion: """
          Removes the pins of snapshots. The snapshots themselves are not changed. The pin of a \
          damaged snapshot can be removed by its id.

          \(Examples.text([
            "sandboxctl snapshots pin latest --repo repo",
            "sandboxctl snapshots unpin latest --repo repo",
          ]))
          """)
    }

    @Argument(help: ArgumentHelp("The snapshots.", valueName: "snap"))
    var snapshots: [String]

    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      let opened = try repository.open().repository
      let finder = SnapshotFinder(opened, console)
      let ids = try snapshots.map { text in
        let name = try SnapshotName(text)
        guard case .id(let digits) = name else { return try finder.find(name).id }
        return try opened.snapshotID(matching: digits)
      }
      try output.show(ids, changed: try opened.unpin(ids), isPinned: false, console)
      return .done
    }
  }
}

extension OutputOptions {
  /// Prints which snapshots are pinned or not, and whether that changed.
  fileprivate func show(
    _ ids: [SnapshotID], changed: Set<SnapshotID>, isPinned: Bool, _ console: Console
  ) throws {
    for id in ids {
      let isChanged = changed.contains(id)
      if json {
        try console.result([
          "id": .string(id.hex), "pinned": .bool(isPinned), "changed": .bool(isChanged),
        ])
      } else if !quiet {
        let name = id.hex.prefix(8)
        let verb = isPinned ? "pinned" : "unpinned"
        let state = isPinned ? "is already pinned" : "is not pinned"
        try console.result(isChanged ? "\(verb) \(name)" : "\(name) \(state)")
      }
    }
  }
}

internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// `sandboxctl repair packs`: what is whole in damaged packs stored again.
struct RepairPacksCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "packs",
      abstract: "Save what is whole in damaged packs, and remove them from the index",
      usage: "sandboxctl repair packs [--dry-run] [<options>]",
      discussion: """
        Reads the packs that 'sandboxctl check' recorded as damaged, and those of another size than \
        the index has. What is whole in them is stored again. Then they move to the directory 'damaged' \
        of the repository, and the index names neither them nor packs that are missing any more. \
        Nothing is deleted. Snapshots are not touched: 'sandboxctl check' tells what they have lost, \
        and the next backup stores it again where the source still has it.

        Exit status 13 says that blobs were lost. 11 says that another program removes objects from \
        the repository just now, 130 that it was interrupted.

        With --json the answer is one object; with --verbose, before it a line each second, how far \
        it is.

        \(Examples.text([
          "sandboxctl check --read-data --repo repo", "sandboxctl repair packs --repo repo --dry-run",
          "sandboxctl repair packs --repo repo",
        ]))
        """)
  }

  @Flag(name: .shortAndLong, help: "Say what would be done and do nothing.")
  var dryRun = false

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let opened = try repository.open().repository
    let counters = ProgressCounters()
    let report = try progress.run(counters, output) { isStopping in
      try PackRepair(opened, isDry: dryRun, counters: counters, isStopping: isStopping).run()
    }
    if output.json {
      try console.result(report.json(isDry: dryRun))
    } else if !output.quiet {
      for line in report.lines(isDry: dryRun) { try console.result(line) }
    }
    hint(report, console)
    return report.lostBlobs == 0 ? .done : .damaged
  }

  private func hint(_ report: PackRepair.Report, _ console: Console) {
    if report.isIdle, report.isUnchecked {
      console.hint("'sandboxctl check --read-data\(repository.suffix)' finds damaged packs")
    } else if report.lostBlobs > 0 {
      console.hint(
        "a backup stores what is lost again where the source has it; "
          + "'sandboxctl check\(repository.suffix)' tells which files of snapshots are lost")
    }
  }
}

extension PackRepair.Report {
  /// What a person is told: a line for each pack, and their sum.
  fileprivate func lines(isDry: Bool) -> [String] {
    if isIdle { return ["no pack is damaged or missing: nothing to repair"] }
    let saved = packs.reduce(0) { $0 + $1.savedBlobs }
    let bytes = packs.map(\.savedBytes).clampedSum
    let moved = packs.count { $0.state == .damaged }
    var lines = packs.map { pack in
      let found =
        pack.state == .whole
        ? "whole again"
        : "\(pack.state), \(Sizes.count(pack.savedBlobs, "blob")) saved, \(pack.lostBlobs) lost"
      return "pack \(pack.id.hex.prefix(8)): \(found)"
    }
    lines.append(
      "\(isDry ? "would store" : "stored") \(Sizes.count(saved, "blob")) (\(Sizes.text(bytes))) again, "
        + "\(Sizes.count(lostBlobs, "blob")) lost")
    if moved > 0 {
      lines.append(
        "\(isDry ? "would move" : "moved") \(Sizes.count(moved, "damaged pack")) to the directory "
          + "'damaged' of the repository")
    }
    return lines
  }

  /// The report as `repair packs --json` answers it.
  fileprivate func json(isDry: Bool) -> JSON {
    [
      "dry_run": .bool(isDry),
      "packs": .array(
        packs.map { pack in
          [
            "id": .string(pack.id.hex), "state": .string(pack.state.rawValue),
            "saved_blobs": .integer(Int64(pack.savedBlobs)),
            "saved_bytes": .integer(Int64(clamping: pack.savedBytes)),
            "lost_blobs": .integer(Int64(pack.lostBlobs)),
          ]
        }),
      "indexes_rewritten": .integer(Int64(indexes)),
    ]
  }
}

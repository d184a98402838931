internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// `sandboxctl repair index`: the index made anew from the packs.
struct RepairIndexCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "index",
      abstract: "Make the index anew where it is damaged or gone",
      usage: "sandboxctl repair index [--dry-run] [<options>]",
      discussion: """
        Each pack says itself what it holds. Those that no usable index object names are read (their \
        tables alone, not their data), and an index object is written for them. Damaged index objects \
        are removed when that is done; they stay where a pack that they may have named cannot be \
        read, and so do those of a later version of the program. Snapshots and packs are not touched.

        Exit status 13 says that packs cannot be read: what only they hold is lost, as 'sandboxctl \
        check' tells. 11 says that another program removes objects from the repository just now, 130 \
        that it was interrupted, with nothing changed.

        With --json the answer is one object; with --verbose, before it a line each second, how far \
        it is.

        \(Examples.text([
          "sandboxctl repair index --repo repo --dry-run", "sandboxctl repair index --repo repo",
        ]))
        """)
  }

  @Flag(name: .shortAndLong, help: "Say what would be done and do nothing.")
  var dryRun = false

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let repository = try repository.open().repository
    let counters = ProgressCounters()
    let report = try progress.run(counters, output) { isStopping in
      try IndexRepair(
        repository, isDry: dryRun, counters: counters, isStopping: isStopping
      ).run()
    }
    for error in report.unreadable + report.kept { console.warning(error.description) }
    if output.json {
      try console.result(report.json(isDry: dryRun))
    } else if !output.quiet {
      for line in report.lines(isDry: dryRun) { try console.result(line) }
    }
    return report.unreadable.isEmpty ? .done : .damaged
  }
}

extension IndexRepair.Report {
  /// What a person is told.
  fileprivate func lines(isDry: Bool) -> [String] {
    if isIdle { return ["the index is whole: nothing to repair"] }
    var lines: [String] = []
    if packs > 0 {
      lines.append(
        "\(isDry ? "would name" : "named") \(Sizes.count(packs, "pack")) with "
          + "\(Sizes.count(blobs, "blob")) in the index again")
    }
    if !removed.isEmpty {
      lines.append(
        "\(isDry ? "would remove" : "removed") "
          + Sizes.count(removed.count, "damaged index object"))
    }
    if !kept.isEmpty {
      lines.append("\(Sizes.count(kept.count, "index object")) that cannot be used stays as it is")
    }
    if !unreadable.isEmpty {
      lines.append("\(Sizes.count(unreadable.count, "pack")) cannot be read")
    }
    return lines
  }

  /// The report as `repair index --json` answers it.
  fileprivate func json(isDry: Bool) -> JSON {
    [
      "dry_run": .bool(isDry), "packs": .integer(Int64(packs)), "blobs": .integer(Int64(blobs)),
      "written": .array(written.map { .string($0.hex) }),
      "removed": .array(removed.map { .string($0.hex) }),
      "kept": .integer(Int64(kept.count)), "unreadable": .integer(Int64(unreadable.count)),
    ]
  }
}

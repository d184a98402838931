internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// `sandboxctl repair index`: rebuilds the index from the packs.
struct RepairIndexCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "index",
      abstract: "Rebuild damaged or missing parts of the index",
      usage: "sandboxctl repair index [--dry-run] [<options>]",
      discussion: """
        Reads the tables, but not the data, of packs that no usable index object lists, and writes \
        an index object for them. Damaged index objects are then removed, unless a pack that they \
        may list cannot be read. Index objects of a later version of the program are kept. \
        Snapshots and packs are not changed.

        See sandboxctl-repair-index(1) for the JSON output and the exit statuses.

        \(Examples.text([
          "sandboxctl repair index --repo repo --dry-run", "sandboxctl repair index --repo repo",
        ]))
        """)
  }

  @Flag(name: .shortAndLong, help: "Show what would be done, without doing it.")
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
  /// Returns the report as text.
  fileprivate func lines(isDry: Bool) -> [String] {
    if isIdle { return ["the index is intact: nothing to repair"] }
    var lines: [String] = []
    if packs > 0 {
      lines.append(
        "\(isDry ? "would index" : "indexed") \(Sizes.count(packs, "pack")) with "
          + Sizes.count(blobs, "blob"))
    }
    if !removed.isEmpty {
      lines.append(
        "\(isDry ? "would remove" : "removed") "
          + Sizes.count(removed.count, "damaged index object"))
    }
    if !kept.isEmpty {
      lines.append(
        "\(isDry ? "would keep" : "kept") \(Sizes.count(kept.count, "unusable index object"))")
    }
    if !unreadable.isEmpty {
      lines.append("\(Sizes.count(unreadable.count, "pack")) cannot be read")
    }
    return lines
  }

  /// Returns the report as `repair index --json` prints it.
  fileprivate func json(isDry: Bool) -> JSON {
    [
      "dry_run": .bool(isDry), "packs": .integer(Int64(packs)), "blobs": .integer(Int64(blobs)),
      "written": .array(written.map { .string($0.hex) }),
      "removed": .array(removed.map { .string($0.hex) }),
      "kept": .integer(Int64(kept.count)), "unreadable": .integer(Int64(unreadable.count)),
    ]
  }
}

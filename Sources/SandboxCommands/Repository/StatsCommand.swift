internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SnapshotQueries
internal import SystemIO

/// `sandboxctl stats [SNAP]`: shows the size of a repository or a snapshot.
struct StatsCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "stats",
      abstract: "Show the size of the snapshots and of the repository",
      usage: "sandboxctl stats [<snap> | --growth] [<options>]",
      discussion: """
        For the whole repository: the size of all snapshots together, of the distinct data in \
        them, and of the stored data, with the ratios of deduplication and compression. For one \
        snapshot: files and bytes of each app (or group or directory) and data class. With \
        --growth: the data that each snapshot added, and what it alone holds, which forgetting it \
        frees.

        See sandboxctl-stats(1) for the definitions and the JSON output.

        \(Examples.text([
          "sandboxctl stats --repo repo", "sandboxctl stats latest --repo repo",
          "sandboxctl stats --growth --repo repo",
        ]))
        """)
  }

  @Argument(
    help: ArgumentHelp("The snapshot to show (default: the whole repository).", valueName: "snap"))
  var snapshot: String?

  @Flag(help: "Show what each snapshot added and what it alone holds.")
  var growth = false

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var list: ListOptions
  @OptionGroup var progress: ReadingOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let name = try snapshot.map(SnapshotName.init)
    if growth, name != nil {
      throw UsageError(
        .optionsConflict, "'--growth' compares all snapshots and cannot be used with one",
        hint: "omit the snapshot")
    }
    let noun = growth ? "snapshot" : name == nil ? "blob" : "file"
    let query = try progress.open(repository, console, of: noun, isQuiet: output.quiet)
    if growth { return try showGrowth(of: query, console) }
    if let name { return try count(query.find(name), in: query, console) }
    let statistics = try query.statistics()
    console.warn(of: statistics.damagedIndexes)
    if output.json {
      try console.result(statistics.json)
    } else {
      for line in statistics.lines { try console.result(line) }
    }
    for error in statistics.unreadable { console.warning(error.description) }
    return statistics.unreadable.isEmpty ? .done : .damaged
  }

  private func count(
    _ stored: StoredSnapshot, in query: SnapshotQuery, _ console: Console
  ) throws -> ExitStatus {
    query.watch.expectAll(of: stored)
    let reader = try query.beginReading()
    defer { console.warn(of: reader.remarks) }
    var excerpt = RunningExcerpt(all: list.all || output.json)
    let statistics = try SnapshotStatistics(of: stored, from: reader) { remark in
      let path = remark.path.isEmpty ? "." : remark.path
      excerpt.add("\(path): \(remark.remark)", after: "damaged: ").forEach(console.warning)
    }
    excerpt.remainder.forEach(console.warning)
    if output.json {
      try console.result(statistics.json(stored))
    } else {
      for line in statistics.lines(listsAll: list.all) { try console.result(line) }
    }
    return statistics.damaged == 0 ? .done : .damaged
  }
}

extension RepositoryStatistics {
  /// The statistics as text.
  var lines: [String] {
    var table = Table([("", .left), ("", .right), ("", .left)])
    let times = [oldest, newest].compactMap { $0 }.map { Times.text($0) }
    table.add(["snapshots", Sizes.count(snapshots), times.joined(separator: " to ")])
    table.add(["content", Sizes.text(bytes), "in \(Sizes.count(Int(clamping: files), "file"))"])
    table.add([
      "distinct", Sizes.text(data.bytes),
      "in \(Sizes.count(data.count, "blob")): \(Self.text(deduplication)) by deduplication",
    ])
    table.add([
      "directories", Sizes.text(trees.bytes + lists.bytes),
      "in \(Sizes.count(trees.count + lists.count, "blob"))",
    ])
    table.add([
      "stored", Sizes.text(packBytes),
      "in \(Sizes.count(packs, "pack")): \(Self.text(compression)) by compression",
    ])
    table.add(["index", Sizes.text(indexBytes), ""])
    return Array(table.lines.dropFirst())
  }

  /// Returns a ratio as text: `2.8 to 1`.
  private static func text(_ ratio: Double) -> String {
    let tenths = Int(min(ratio * 10, 1e15).rounded())
    return "\(Sizes.count(tenths / 10)).\(tenths % 10) to 1"
  }

  /// The statistics as `stats --json` prints them.
  var json: JSON {
    [
      "snapshots": .integer(Int64(snapshots)),
      "oldest": oldest.map { .string($0.rfc3339) } ?? .null,
      "newest": newest.map { .string($0.rfc3339) } ?? .null,
      "files": .integer(Int64(clamping: files)), "bytes": .integer(Int64(clamping: bytes)),
      "data": data.json, "trees": trees.json, "lists": lists.json,
      "packs": .integer(Int64(packs)), "pack_bytes": .integer(Int64(clamping: packBytes)),
      "index_bytes": .integer(Int64(clamping: indexBytes)),
      "snapshot_bytes": .integer(Int64(clamping: snapshotBytes)),
      "deduplication": .double(deduplication), "compression": .double(compression),
    ]
  }
}

extension RepositoryStatistics.BlobTotals {
  fileprivate var json: JSON {
    ["blobs": .integer(Int64(count)), "bytes": .integer(Int64(clamping: bytes))]
  }
}

extension SnapshotStatistics {
  /// Returns files and bytes by owner and class, the largest of an owner first, and the total; of
  /// many rows the largest.
  func lines(listsAll: Bool) -> [String] {
    var table = Table([("", .left), ("class", .left), ("files", .right), ("size", .right)])
    let excerpt = ListExcerpt(rows, all: listsAll, size: \.bytes)
    var last: ByteString?
    for row in excerpt.shown {
      table.add([
        row.owner == last ? "" : row.owner.description, row.dataClass, Sizes.count(row.files),
        Sizes.text(row.bytes),
      ])
      last = row.owner
    }
    table.add([
      "total", "", Sizes.count(rows.reduce(0) { $0 + $1.files }),
      Sizes.text(rows.lazy.map(\.bytes).clampedSum),
    ])
    var lines = table.lines
    if let remainder = excerpt.remainder { lines.insert(remainder, at: lines.count - 1) }
    return lines
  }

  /// Returns the statistics as `stats SNAP --json` prints them.
  func json(_ stored: StoredSnapshot) -> JSON {
    let rows = rows.map { row -> JSON in
      .object(
        JSON.path(row.owner, named: "owner") + [
          JSON.Member("class", .string(row.dataClass)),
          JSON.Member("files", .integer(Int64(row.files))),
          JSON.Member("bytes", .integer(Int64(clamping: row.bytes))),
        ])
    }
    return ["snapshot": .string(stored.id.hex), "rows": .array(rows)]
  }
}

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

  static var precedence: [OptionPrecedence] {
    OptionPrecedence.oneOf(["growth"], [OptionPrecedence.arguments])
  }

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
    let uncertain = warn(of: statistics, console)
    if output.json {
      try console.result(statistics.json)
    } else {
      for line in statistics.lines { try console.result(line) }
    }
    let skipped = console.warn(skipping: statistics.unreadable)
    if statistics.missingPacks > 0 {
      let packs = Sizes.count(statistics.missingPacks, "pack")
      let verb = statistics.missingPacks == 1 ? "does" : "do"
      console.warning("the index names \(packs) that \(verb) not exist")
      console.hint("'sandboxctl check' names the snapshots that need it")
    }
    return .together([skipped, uncertain, statistics.missingPacks == 0 ? .done : .damaged])
  }

  /// Prints warnings about the index, and returns the resulting status for the figures.
  private func warn(of statistics: RepositoryStatistics, _ console: Console) -> ExitStatus {
    console.warn(of: statistics.damagedIndexes)
    let count = statistics.uncountedIndexes.count
    if count > 0 {
      console.warning(
        "the figures are uncertain: blobs that only \(Sizes.count(count, "unusable index object")) "
          + "\(count == 1 ? "names" : "name") are not counted")
    }
    return ExitStatus(without: statistics.uncountedIndexes)
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
      "packs": .integer(Int64(packs)), "missing_packs": .integer(Int64(missingPacks)),
      "uncounted_indexes": .integer(Int64(uncountedIndexes.count)),
      "pack_bytes": .integer(Int64(clamping: packBytes)),
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
    var table = Table([("path", .left), ("class", .left), ("files", .right), ("size", .right)])
    let excerpt = ListExcerpt(rows, all: listsAll, size: \.bytes)
    for row in excerpt.shown {
      table.add([
        row.owner.description, row.dataClass, Sizes.count(row.files), Sizes.text(row.bytes),
      ])
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

extension StatsCommand {
  /// Prints the growth of the repository, the oldest snapshot first.
  func showGrowth(of query: SnapshotQuery, _ console: Console) throws -> ExitStatus {
    let growth = try query.growth { path, error in
      console.warning("damaged: \(path.isEmpty ? "." : path): \(error.reason)")
    }
    let skipped = console.warn(skipping: growth.damaged)
    let isLost = growth.lostBlobs > 0 && !growth.isIndexRefused
    if growth.lostBlobs > 0, growth.isIndexRefused {
      console.warning(
        "\(Sizes.count(growth.lostBlobs, "blob")) that snapshots need are in no index object that "
          + "can be read, and are not counted")
    }
    if isLost {
      console.warning("snapshots need \(Sizes.count(growth.lostBlobs, "blob")) that no pack has")
      console.hint("'sandboxctl check' lists the affected files")
    }
    if output.json {
      for row in growth.rows { try console.result(row.json) }
      try console.result(growth.json)
    } else {
      for line in growth.lines(listsAll: list.all) { try console.result(line) }
    }
    return growth.unreadable == 0 && !isLost ? skipped : .damaged
  }
}

extension RepositoryGrowth {
  /// Returns the growth by snapshot, then by app and class; of many rows the largest.
  fileprivate func lines(listsAll: Bool) -> [String] {
    let hasDevices = Set(rows.lazy.map(\.head.device.identity)).count > 1
    var table = Table(
      [("snapshot", .left), ("time", .left)] + (hasDevices ? [("device", .left)] : []) + [
        ("size", .right), ("added", .right), ("stored", .right), ("alone", .right),
        ("stored", .right),
      ])
    let excerpt = ListExcerpt(rows, all: listsAll, isEmpty: { _ in false }, size: \.added.stored)
    for row in excerpt.shown {
      table.add(
        [String(row.head.id.hex.prefix(8)), Times.text(row.head.time)]
          + (hasDevices ? [row.head.deviceText] : []) + [Sizes.text(row.head.totals.bytes)]
          + row.added.cells + row.alone.cells)
    }
    return table.lines + [excerpt.remainder].compactMap(\.self) + [""]
      + partLines(listsAll: listsAll)
  }

  private func partLines(listsAll: Bool) -> [String] {
    var table = Table([("path", .left), ("class", .left), ("added", .right), ("stored", .right)])
    let excerpt = ListExcerpt(parts, all: listsAll, size: \.amount.stored)
    for part in excerpt.shown {
      let owner = part.owner.isEmpty ? "." : part.owner.description
      table.add([owner, part.dataClass.shown] + part.amount.cells)
    }
    table.add(["total", ""] + total.cells)
    var lines = table.lines
    if let remainder = excerpt.remainder { lines.insert(remainder, at: lines.count - 1) }
    return lines
  }

  /// The last line of `stats --growth --json`.
  fileprivate var json: JSON {
    [
      "summary": [
        "snapshots": .integer(Int64(rows.count)), "added": total.json,
        "parts": .array(parts.map(\.json)), "unreadable": .integer(Int64(unreadable)),
        "lost_blobs": .integer(Int64(lostBlobs)),
        "uncounted_indexes": .integer(Int64(uncountedIndexes)),
      ]
    ]
  }
}

extension RepositoryGrowth.Row {
  /// The snapshot as a line of `stats --growth --json`.
  fileprivate var json: JSON {
    [
      "snapshot": .string(head.id.hex), "time": .string(head.time.rfc3339),
      "device": .string(head.device.identity),
      "files": .integer(Int64(clamping: head.totals.files)),
      "bytes": .integer(Int64(clamping: head.totals.bytes)), "added": added.json,
      "alone": alone.json, "parts": .array(parts.map(\.json)),
    ]
  }
}

extension RepositoryGrowth.Part {
  fileprivate var json: JSON {
    .object(
      JSON.path(owner, named: "owner") + [JSON.Member("class", .string(dataClass))]
        + amount.members)
  }
}

extension RepositoryGrowth.Amount {
  fileprivate var cells: [String] { [Sizes.text(bytes), Sizes.text(stored)] }

  fileprivate var members: [JSON.Member] {
    [
      JSON.Member("blobs", .integer(Int64(blobs))),
      JSON.Member("bytes", .integer(Int64(clamping: bytes))),
      JSON.Member("stored_bytes", .integer(Int64(clamping: stored))),
    ]
  }

  fileprivate var json: JSON { .object(members) }
}

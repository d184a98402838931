internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SystemIO

/// `sandboxctl check`: checks a repository for damage.
struct CheckCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "check",
      abstract: "Check a repository for damage and list the affected files",
      usage: """
        sandboxctl check [--read-data | --read-data-subset <part>] [<options>]
        sandboxctl check --append-only [<options>]
        """,
      discussion: """
        Reads all snapshots, their directories and the index, and checks that the packs with their \
        data exist. With --read-data also reads all packs completely and verifies the checksum of \
        each piece of a file.

        Each damaged object is listed, then each path that cannot be restored, with the affected \
        snapshots; without --all the first 20 of each. All other paths can be restored. Damaged \
        packs are recorded: later backups store their content again from the source.

        See sandboxctl-check(1) for --append-only, the JSON output and exit statuses.

        \(Examples.text([
          "sandboxctl check --repo repo", "sandboxctl check --read-data --repo repo",
          "sandboxctl check --read-data-subset 1/4 --repo repo",
        ]))
        """)
  }

  @Flag(help: "Read and verify all data.")
  var readData = false

  @Option(
    help: ArgumentHelp(
      "Read and verify part of the data: 10% for the next tenth, so that ten runs read all data, "
        + "or 2/7 for the second of seven groups that together contain all data.",
      valueName: "part"))
  var readDataSubset: String?

  @Flag(help: "Only check whether these credentials can replace or remove objects.")
  var appendOnly = false

  @OptionGroup var metrics: MetricsOptions
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var list: ListOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  static var precedence: [OptionPrecedence] {
    OptionPrecedence.oneOf(["append-only"], ["read-data"], ["read-data-subset"])
      + OptionPrecedence.choosing(["append-only"], replaces: ["metrics"])
  }

  func run(_ console: Console) throws -> ExitStatus {
    if appendOnly { return try checkProtection(console) }
    return try metrics.record(of: "check", console) {
      let (status, report) = try check(console)
      return (status, { $0.add(report) })
    }
  }

  /// The contents of the metrics.
  fileprivate struct Found {
    let report: RepositoryCheck.Report
    let hosts: [HostSnapshots]
  }

  private func check(
    _ console: Console
  ) throws -> (status: ExitStatus, report: Found) {
    let reading = try reading()
    let checked = try repository.open(console).repository
    let counters = ProgressCounters()
    let result = try progress.run(counters, output) { isStopping in
      try RepositoryCheck(
        checked, reading: reading, rounds: checked.hostCheckRounds,
        headCache: checked.hostHeadCache, workers: checked.workers, counters: counters,
        isStopping: isStopping
      ).run()
    }
    var excerpt = RunningExcerpt(all: list.all)
    let report = try result.forEachFinding { finding in
      if output.json {
        try console.result(finding.json(suggesting: console.suggested))
      } else if !output.quiet || finding.isDamage {
        for line in excerpt.add(finding.text, after: finding.word) { try console.result(line) }
      }
    }
    for line in excerpt.remainder { try console.result(line) }
    // Objects that an older key file does not open are intact, so a repair would only remove them.
    let hints = checked.writeRefusal == nil ? self.hints(report, console.suggested) : []
    try output.show(
      [report.json(hints: hints.map(\.text))], lines: report.lines(reading), console)
    record(result, console)
    result.recordRound()
    for hint in hints where hint.isNote || !output.json { console.hint(hint.text) }
    return (report.status, Found(report: report, hosts: result.hosts))
  }

  /// A remedy for a finding.
  private struct Hint {
    let text: String
    /// Whether it is also printed on standard error with `--json`.
    let isNote: Bool
  }

  private func hints(
    _ report: RepositoryCheck.Report, _ commands: SuggestedCommands
  ) -> [Hint] {
    var hints: [Hint] = []
    func add(_ text: String, isNote: Bool = false) {
      hints.append(Hint(text: commands.complete(text), isNote: isNote))
    }
    if let hint = report.unreadableHint { add(hint, isNote: true) }
    if report.untrusted > 0 {
      add(
        "'sandboxctl key trust' trusts a signer, or with '--snapshot ID' accepts a snapshot",
        isNote: true)
    }
    if report.isIndexDamaged {
      add(
        "'sandboxctl repair index' rebuilds the index from the packs",
        isNote: true)
    }
    for hint in report.otherHints { add(hint) }
    if report.arePacksDamaged {
      add(
        "back up again to store the content of damaged packs that the source still has; then "
          + "'sandboxctl repair packs' saves their intact data")
    } else if report.costs > 0, !report.isIndexDamaged {
      add(
        "'sandboxctl repair snapshots' rewrites the affected snapshots without the lost data")
    }
    return hints
  }

  /// Records the damage for later backups. A repository that cannot be written to does not fail the
  /// check.
  private func record(_ result: RepositoryCheck.Result, _ console: Console) {
    do throws(StoreError) {
      try result.recordDamage()
    } catch {
      console.warning("cannot record the damaged packs, so later backups use them: \(error)")
    }
  }

  private func reading() throws -> RepositoryCheck.Reading {
    guard let part = readDataSubset else { return readData ? .everything : .trees }
    if readData {
      throw UsageError(
        .optionsConflict, "'--read-data' and '--read-data-subset' cannot be used together",
        hint: "give one of them")
    }
    let numbers = part.split(separator: "/", omittingEmptySubsequences: false).map { Int($0) }
    if numbers.count == 2, let group = numbers[0], let count = numbers[1],
      (1...65_536).contains(count), (1...count).contains(group)
    {
      return .group(group, count: count)
    }
    if part.hasSuffix("%"), let percent = Double(part.dropLast()), percent > 0, percent <= 100 {
      return .fraction(percent / 100)
    }
    throw UsageError(
      .invalidValue, "'\(ByteString(part))' is not a part of the data",
      hint: "write '10%', or '2/7' for the second of seven groups")
  }
}

extension MetricsText {
  /// Adds the metrics of a check.
  fileprivate mutating func add(_ found: CheckCommand.Found) {
    let report = found.report
    add("snapshots", help: "Snapshots in the repository.", value: report.snapshots)
    add("packs", help: "Packs in the repository.", value: report.packs)
    add("stored_bytes", help: "Bytes of the packs.", value: report.storedBytes)
    add("packs_read", help: "Packs whose data was read and verified.", value: report.packsRead)
    add("bytes_read", help: "Bytes of these packs.", value: report.bytesRead)
    add("damaged_objects", help: "Objects that are damaged or missing.", value: report.damaged)
    add(
      "unreadable_objects", help: "Objects that cannot be read and may be intact.",
      value: report.unreadable)
    add("signed_snapshots", help: "Snapshots with a valid signature.", value: report.signed)
    add(
      "untrusted_snapshots", help: "Snapshots that no trusted signer signed.",
      value: report.untrusted)
    add("lost_paths", help: "Paths that cannot be restored completely.", value: report.costs)
    add("remarks", help: "Remarks that affect no snapshot.", value: report.remarks)
    add(found.hosts)
  }
}

extension RepositoryCheck.Finding {
  /// The kind, as the beginning of a line.
  fileprivate var word: String {
    switch self {
    case .damage: "damaged  "
    case .unreadable: "unreadable"
    case .cost: "lost     "
    case .uncertain: "uncertain"
    case .untrusted: "untrusted"
    case .remark: "remark   "
    }
  }

  /// Whether the finding affects a snapshot, or may affect one.
  var isDamage: Bool { if case .remark = self { false } else { true } }

  /// The finding as text, after the word for its kind.
  fileprivate var text: String {
    switch self {
    case .damage(let object, let reason, _), .remark(let object, let reason):
      "\(object): \(reason)"
    case .unreadable(let object, let reason, _): " \(object): \(reason)"
    case .cost(let path, let snapshots, _): Self.text(path, snapshots)
    case .uncertain(let path, let snapshots, _): " " + Self.text(path, snapshots)
    case .untrusted(let snapshot, let reason): " snapshot \(snapshot.hex.prefix(8)): \(reason)"
    }
  }

  private static func text(_ path: ByteString, _ snapshots: [SnapshotID]) -> String {
    (path.isEmpty ? "everything" : path.description) + snapshots.shortNames
  }

  /// Returns the finding as a line of `check --json`.
  ///
  /// - Parameter commands: completes the commands in the remedy.
  func json(suggesting commands: SuggestedCommands) -> JSON {
    switch self {
    case .damage(let object, let reason, let hint):
      return Self.json("damage", of: object, reason: reason, hint: hint.map(commands.complete))
    case .unreadable(let object, let reason, let hint):
      return Self.json("unreadable", of: object, reason: reason, hint: hint.map(commands.complete))
    case .cost(let path, let snapshots, let reason):
      return Self.json("cost", of: path, in: snapshots, reason: reason)
    case .uncertain(let path, let snapshots, let reason):
      return Self.json("uncertain", of: path, in: snapshots, reason: reason)
    case .untrusted(let snapshot, let reason):
      return [
        "finding": "untrusted", "snapshot": .string(snapshot.hex), "reason": .string(reason),
      ]
    case .remark(let object, let reason):
      return Self.json("remark", of: object, reason: reason, hint: nil)
    }
  }

  private static func json(
    _ finding: String, of object: String, reason: String, hint: String?
  ) -> JSON {
    let members = [
      JSON.Member("finding", .string(finding)), JSON.Member("object", .string(object)),
      JSON.Member("reason", .string(reason)),
    ]
    return .object(members + (hint.map { [JSON.Member("hint", .string($0))] } ?? []))
  }

  private static func json(
    _ finding: String, of path: ByteString, in snapshots: [SnapshotID], reason: String
  ) -> JSON {
    .object(
      [JSON.Member("finding", .string(finding))] + JSON.path(path) + [
        JSON.Member("snapshots", snapshots.json), JSON.Member("reason", .string(reason)),
      ])
  }
}

extension RepositoryCheck.Report {
  /// The exit status: `done` if everything in the accepted snapshots can be restored.
  fileprivate var status: ExitStatus {
    if damaged > 0 || costs > 0 || untrusted > 0 { return .damaged }
    return unreadable > 0 ? .doneInPart : .done
  }

  /// Returns the report as the last line of `check --json`.
  func json(hints: [String]) -> JSON {
    [
      "summary": [
        "snapshots": .integer(Int64(snapshots)), "indexes": .integer(Int64(indexes)),
        "packs": .integer(Int64(packs)), "stored_bytes": .integer(Int64(clamping: storedBytes)),
        "trees": .integer(Int64(trees)), "entries": .integer(Int64(entries)),
        "packs_read": .integer(Int64(packsRead)),
        "bytes_read": .integer(Int64(clamping: bytesRead)),
        "blobs_read": .integer(Int64(blobsRead)), "damaged": .integer(Int64(damaged)),
        "unreadable": .integer(Int64(unreadable)),
        "costs": .integer(Int64(costs)), "uncertain": .integer(Int64(uncertain)),
        "signed": .integer(Int64(signed)),
        "untrusted": .integer(Int64(untrusted)), "remarks": .integer(Int64(remarks)),
        "hints": .array(hints.map { .string($0) }), "seconds": .double(seconds),
      ]
    ]
  }

  /// Returns the summary as text.
  func lines(_ reading: RepositoryCheck.Reading) -> [String] {
    let signatures = signed > 0 ? " (\(Sizes.count(signed)) signed)" : ""
    let what =
      "\(Sizes.count(snapshots, "snapshot"))\(signatures), \(Sizes.count(trees, "directory")), "
      + "\(Sizes.count(packs, "pack")) of \(Sizes.text(storedBytes))"
    let read =
      reading == .trees
      ? "data not read (--read-data reads it)"
      : "\(Sizes.text(bytesRead)) in \(Sizes.count(packsRead, "pack")) read"
    let looked = "checked \(what); \(read); in \(Times.duration(seconds))"
    let refused =
      untrusted > 0 ? ["\(Sizes.count(untrusted, "snapshot")) not signed by a trusted signer"] : []
    let closed =
      unreadable > 0
      ? [
        "\(Sizes.count(unreadable, "object")) cannot be read"
          + (hasOtherReasons ? "" : ": access is denied")
      ] : []
    let unknown =
      uncertain > 0
      ? [
        "\(Sizes.count(uncertain, "path")) may be lost: unknown until "
          + "\(unreadable == 1 ? "this object" : "these objects") can be read"
      ] : []
    return [looked] + refused + closed + unknown + damageLines
  }

  private var damageLines: [String] {
    if damaged == 0, costs == 0 {
      return [unreadable == 0 ? "no damage found" : "no damage found in what can be read"]
    }
    if costs == 0 {
      let rest =
        snapshots == 0
        ? "there is no readable snapshot"
        : unreadable == 0
          ? "all readable snapshots can be restored completely" : "nothing else is known to be lost"
      return ["\(Sizes.count(damaged, "object")) damaged; \(rest)"]
    }
    return [
      "\(Sizes.count(damaged, "object")) damaged, "
        + "\(Sizes.count(costs, "path")) cannot be restored completely"
    ]
  }
}

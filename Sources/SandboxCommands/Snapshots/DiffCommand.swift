internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import SnapshotQueries
internal import SystemIO

/// `sandboxctl diff SNAP SNAP [PATH]`: shows the differences between two snapshots.
struct DiffCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "diff",
      abstract: "Show the differences between two snapshots",
      usage: "sandboxctl diff <snap> <snap> [<path>] [--metadata] [<options>]",
      discussion: """
        Lists the entries that were added (+), removed (-), modified (M, content) or replaced by \
        an entry of another type (T), in the whole snapshots or below a logical path. With \
        --metadata, also lists entries with equal content whose mode, owner, time, flags, \
        attributes or holes differ (U). Directories that are equal in both are not read.

        'latest' is the snapshot that was made last, of any device; latest~1 is the one before it \
        of the same device.

        \(Examples.text([
          "sandboxctl backup --root device --repo repo", "sandboxctl sample device --day 1",
          "sandboxctl backup --root device --repo repo",
          "sandboxctl diff latest~1 latest --repo repo",
          "sandboxctl diff latest~1 latest apps/org.example.notebook --repo repo",
        ]))
        """)
  }

  @Argument(help: ArgumentHelp("The snapshot to compare from.", valueName: "snap"))
  var first: String

  @Argument(help: ArgumentHelp("The snapshot to compare with.", valueName: "snap"))
  var second: String

  @Argument(help: "The logical path to compare (default: the whole snapshots).")
  var path: ByteString?

  @Flag(name: .shortAndLong, help: "Also list differences in metadata only.")
  var metadata = false

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ReadingOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let (first, second) = (try SnapshotName(first), try SnapshotName(second))
    let query = try progress.open(repository, console, isQuiet: output.quiet)
    let (before, after) = (try query.find(first), try query.find(second))
    let path = path ?? ""
    let logical = try (try? before.snapshot.logicalPath(path)) ?? after.snapshot.logicalPath(path)
    let reader = try query.beginReading()
    defer { console.warn(of: reader.remarks) }
    let comparison = try SnapshotComparison(before, after, path: logical, from: reader)
    var summary = Summary()
    var losses = ExitStatus.done
    try comparison.run { finding in
      switch finding {
      case .difference(let difference):
        summary.count(difference)
        if difference.kind != .metadata || metadata { try show(difference, console) }
      case .damage(let path, let error):
        summary.damaged += 1
        losses = .together([losses, ExitStatus(without: [error])])
        console.warning("\(error.lossLabel): \(path.isEmpty ? "." : path): \(error.reason)")
      }
    }
    if output.json {
      try console.result(summary.json)
    } else if !output.quiet {
      try console.result(summary.text(listsMetadata: metadata))
    }
    return losses
  }

  private func show(_ difference: SnapshotDifference, _ console: Console) throws {
    if output.json { return try console.result(difference.json) }
    try console.result(difference.text)
  }
}

extension DiffCommand {
  /// Counts of the differences between snapshots.
  private struct Summary {
    private var counts: [SnapshotDifference.Kind: Int] = [:]
    private var addedBytes: UInt64 = 0
    private var removedBytes: UInt64 = 0
    /// The number of directories that could not be compared.
    var damaged = 0

    mutating func count(_ difference: SnapshotDifference) {
      counts[difference.kind, default: 0] += 1
      switch difference.kind {
      case .added: addedBytes.addClamping(difference.after?.contentSize ?? 0)
      case .removed: removedBytes.addClamping(difference.before?.contentSize ?? 0)
      case .content, .metadata, .type: break
      }
    }

    private func of(_ kind: SnapshotDifference.Kind) -> Int { counts[kind] ?? 0 }

    /// Returns the last line of text output: `2 added (1.2 MiB), 1 modified`.
    func text(listsMetadata: Bool) -> String {
      var parts: [String] = []
      if of(.added) > 0 {
        parts.append("\(Sizes.count(of(.added))) added (\(Sizes.text(addedBytes)))")
      }
      if of(.removed) > 0 {
        parts.append("\(Sizes.count(of(.removed))) removed (\(Sizes.text(removedBytes)))")
      }
      if of(.content) > 0 { parts.append("\(Sizes.count(of(.content))) modified") }
      if of(.type) > 0 { parts.append("\(Sizes.count(of(.type))) of another type") }
      if of(.metadata) > 0 {
        let how = listsMetadata ? "" : " (--metadata lists them)"
        parts.append("\(Sizes.count(of(.metadata))) in metadata only\(how)")
      }
      if damaged > 0 {
        parts.append("\(Sizes.count(damaged, "damaged directory")) not compared")
      }
      return parts.isEmpty ? "no differences" : parts.joined(separator: ", ")
    }

    /// The last line of JSON output.
    var json: JSON {
      let members = SnapshotDifference.Kind.allCases.map { kind in
        JSON.Member(kind.rawValue, .integer(Int64(of(kind))))
      }
      let bytes: [JSON.Member] = [
        JSON.Member("added_bytes", .integer(Int64(clamping: addedBytes))),
        JSON.Member("removed_bytes", .integer(Int64(clamping: removedBytes))),
        JSON.Member("damaged", .integer(Int64(damaged))),
      ]
      return ["summary": .object(members + bytes)]
    }
  }
}

extension SnapshotDifference {
  /// The difference as text: `M  apps/…/notes.md`.
  var text: String {
    let suffix = (after ?? before)?.isDirectory == true ? "/" : ""
    let detail = kind == .metadata ? "  (\(aspects.map(\.rawValue).joined(separator: ", ")))" : ""
    return "\(letter)  \(path)\(suffix)\(detail)"
  }

  private var letter: String {
    switch kind {
    case .added: "+"
    case .removed: "-"
    case .content: "M"
    case .metadata: "U"
    case .type: "T"
    }
  }

  /// The difference as a line of `diff --json`.
  var json: JSON {
    var members = JSON.path(path)
    members.append(JSON.Member("change", .string(kind.rawValue)))
    if !aspects.isEmpty {
      members.append(JSON.Member("differs", .array(aspects.map { .string($0.rawValue) })))
    }
    if let before { members.append(JSON.Member("before", JSON.object(before.jsonMembers))) }
    if let after { members.append(JSON.Member("after", JSON.object(after.jsonMembers))) }
    return .object(members)
  }
}

internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import PolicyEngine
internal import SnapshotQueries
internal import SystemIO

/// `sandboxctl find PATTERN`: finds names and paths in the snapshots.
struct FindCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "find",
      abstract: "Find names or paths in the snapshots",
      usage: "sandboxctl find <pattern> [--snapshot <snap> ...] [--ignore-case] [<options>]",
      discussion: """
        A pattern without a slash matches names, one with a slash whole logical paths. * matches \
        any characters except a slash, ** as a component any number of components, ? one byte, \
        [a-z] one of a set, {a,b} one of several texts; a backslash quotes a character. See \
        Patterns in sandboxctl-policy(5).

        Each distinct entry is listed once, with the ids of all snapshots that have it at its \
        path. With --json an entry is a line with the members of 'ls --json' and 'snapshots'.

        \(Examples.text([
          "sandboxctl find '*.md' --repo repo",
          "sandboxctl find 'apps/*/data/Documents/**/*.sqlite' --repo repo",
          "sandboxctl find 'recipes*' --ignore-case --snapshot latest --repo repo",
        ]))
        """)
  }

  @Argument(help: "The pattern to search for.")
  var pattern: ByteString

  @Option(
    name: .customLong("snapshot"),
    help: ArgumentHelp(
      "Search only this snapshot; may be repeated (default: all snapshots).", valueName: "snap"))
  var chosen: [String] = []

  @Flag(name: .shortAndLong, help: "Ignore the case of ASCII letters.")
  var ignoreCase = false

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ReadingOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let pattern = try parsedPattern()
    let names = try chosen.map(SnapshotName.init)
    let query = try progress.open(repository, console, isQuiet: output.quiet)
    let listing = try query.heads(named: names)
    let skipped = console.warn(skipping: listing.damaged)
    var losses = ExitStatus.done
    var found = 0
    let reader = try query.beginReading()
    defer { console.warn(of: reader.remarks) }
    let search = SnapshotSearch(pattern, in: listing.heads, from: reader)
    var line = ListingLine()
    let devices = SnapshotDevices(listing.heads)
    try search.run { finding in
      switch finding {
      case .found(let path, let entry, let snapshots):
        found += 1
        if output.json { return try console.result(entry.json(at: path, in: snapshots)) }
        let names = devices.areSeveral ? devices.grouped(snapshots).map { devices.name($0[0]) } : []
        let note = names.isEmpty ? "" : "  " + names.joined(separator: ", ")
        line.set(entry, at: path, note: snapshots.map(\.id).shortNames + note)
        try console.result(bytes: line.bytes.span)
      case .damage(let path, let error, let snapshots):
        losses = .together([losses, ExitStatus(without: [error])])
        let subject = path.isEmpty ? "." : path
        console.warning(
          "\(error.lossLabel): \(subject)\(snapshots.map(\.id).shortNames): \(error.reason)")
      }
    }
    if found == 0, !output.json, !output.quiet { console.note(noMatches) }
    return .together([skipped, losses])
  }

  /// The note that nothing matches. A part of a name is a frequent mistake.
  private var noMatches: String {
    let special = Array("*?[{\\/".utf8)
    if pattern.bytes.contains(where: special.contains) { return "no matches" }
    return "no matches: a pattern matches whole names; '*\(pattern)*' finds names that contain it"
  }

  private func parsedPattern() throws -> Pattern {
    do {
      return try Pattern(parsing: Pattern.Text(pattern), ignoringCase: ignoreCase)
    } catch {
      throw UsageError(
        .invalidPattern, "cannot search for '\(pattern)': \(error)",
        hint: "write '*.md' for names, or 'apps/*/data/**/*.md' for logical paths")
    }
  }
}

extension TreeEntry {
  /// Returns the entry as a line of `find --json`.
  func json(at path: ByteString, in snapshots: [SnapshotHead]) -> JSON {
    .object(
      JSON.path(path) + jsonMembers + [
        JSON.Member("snapshots", snapshots.map(\.id).json),
        JSON.Member("devices", snapshots.deviceIdentities),
      ])
  }
}

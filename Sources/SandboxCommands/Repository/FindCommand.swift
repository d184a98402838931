internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Lifecycle
internal import PolicyEngine
internal import SystemIO

/// `sandboxctl find PATTERN`: where something is in the snapshots.
struct FindCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "find",
      abstract: "Find names or paths in the snapshots",
      usage: "sandboxctl find <pattern> [--snapshot <snap> ...] [--ignore-case] [<options>]",
      discussion: """
        A pattern without a slash is held against names, one with a slash against whole logical \
        paths. * stands for any characters but a slash, ** as a component for any components, ? for \
        one byte, [a-z] for one of a set, {a,b} for one of several texts; a backslash takes a \
        character as it is (sandboxctl-policy(5), Patterns).

        Each distinct entry is listed once for all snapshots that have it at its path, with their \
        ids. With --json it is a line: what 'ls --json' says, and snapshots.

        \(Examples.text([
          "sandboxctl find '*.md' --repo repo",
          "sandboxctl find 'apps/*/data/Documents/**/*.sqlite' --repo repo",
          "sandboxctl find 'recipes*' --ignore-case --snapshot latest --repo repo",
        ]))
        """)
  }

  @Argument(help: "What to look for.")
  var pattern: ByteString

  @Option(
    name: .customLong("snapshot"),
    help: ArgumentHelp(
      "Look in this snapshot alone; may be repeated. Without it: in all.", valueName: "snap"))
  var chosen: [String] = []

  @Flag(name: .shortAndLong, help: "Take letters of ASCII in either case.")
  var ignoreCase = false

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ReadingOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    let pattern = try parsedPattern()
    let names = try chosen.map(SnapshotName.init)
    let repository = try repository.open().repository
    let watch = try progress.watch(repository, console, isQuiet: output.quiet)
    let listing = try repository.snapshots(named: names, console)
    for error in listing.damaged { console.warning(error.description) }
    var damaged = listing.damaged.count
    var found = 0
    let reader = try repository.beginCachedReading(watch)
    defer { console.warn(of: reader.remarks) }
    let search = SnapshotSearch(pattern, in: listing.snapshots, from: reader)
    var line = ListingLine()
    let devices = SnapshotDevices(listing.snapshots)
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
        damaged += 1
        let place = path.isEmpty ? "." : path
        console.warning("damaged: \(place)\(snapshots.map(\.id).shortNames): \(error.reason)")
      }
    }
    if found == 0, !output.json, !output.quiet { console.note("nothing is called so") }
    return damaged == 0 ? .done : .damaged
  }

  private func parsedPattern() throws -> Pattern {
    do {
      return try Pattern(parsing: PatternText(pattern), ignoringCase: ignoreCase)
    } catch {
      throw UsageError(
        "cannot look for '\(pattern)': \(error)",
        hint: "write it as '*.md' for names, or 'apps/*/data/**/*.md' for logical paths")
    }
  }
}

internal import ArchiveStore
internal import ArgumentParser
internal import Retention
internal import SnapshotQueries
internal import SystemIO

/// The snapshots that a command works on.
struct SnapshotFilterOptions: ParsableArguments {
  @Option(
    name: .customLong("app"),
    help: .app("Only snapshots with this app", addition: "may be repeated"))
  var apps: [String] = []

  @Option(
    name: .customLong("host"),
    help: ArgumentHelp("Only snapshots of this host; may be repeated.", valueName: "host"))
  var hosts: [String] = []

  @Option(
    name: .customLong("tag"),
    help: ArgumentHelp(
      "Only snapshots with all of these tags, separated by commas, or without tags if empty; may "
        + "be repeated.", valueName: "tags"))
  var tags: [SnapshotTags] = []

  /// Whether no option is given.
  var isEmpty: Bool { apps.isEmpty && hosts.isEmpty && tags.isEmpty }

  /// The error for snapshots that are both named and selected by these options.
  static var namedAsWell: UsageError {
    UsageError(
      .optionsConflict, "snapshots are both named and selected by '--app', '--host' or '--tag'",
      hint: "give names or these options")
  }

  /// Prints that no snapshot is selected, if an option is given.
  func noteNoMatch(_ console: Console) {
    if !isEmpty { console.note("no snapshot matches '--app', '--host' and '--tag'") }
  }

  /// The options as words of a command line.
  var words: [String] {
    apps.flatMap { ["--app", $0] } + hosts.flatMap { ["--host", $0] }
      + tags.flatMap { ["--tag", $0.list.description] }
  }

  /// Whether a snapshot is selected: it matches one value of each given option.
  func isSelected(_ head: SnapshotHead) -> Bool {
    (hosts.isEmpty || hosts.contains(head.host))
      && (tags.isEmpty || tags.contains { $0.list.matches(head) })
      && (apps.isEmpty || apps.contains { name in head.apps.contains { $0.isCalled(name) } })
  }
}

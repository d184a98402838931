internal import ArchiveStore
internal import Codecs
internal import Restore
internal import SystemIO

extension Console {
  /// Prints where a restore kept the previous entries under other names: a single one with the
  /// command that deletes it, or a list.
  func show(setAside entries: [SetAsideEntry], all: Bool) throws {
    guard let first = entries.first else { return }
    if entries.count == 1 {
      let command = "rm \(first.isDirectory ? "-r " : "")\(ShellWord.text(first.keptPath))"
      return try result(
        "the previous '\(first.path.lastComponent ?? first.path)' is kept as "
          + "\(Paths.text(first.keptPath)); '\(command)' deletes it when it is no longer needed")
    }
    try result(
      "\(Sizes.count(entries.count, "previous entry")) kept under other names; "
        + "delete them when they are no longer needed:")
    try list("  ", entries.map(\.keptPath), all: all)
  }
}

extension SetAsideEntry {
  var json: JSON { .object(JSON.path(path) + JSON.path(keptPath, named: "kept_path")) }
}

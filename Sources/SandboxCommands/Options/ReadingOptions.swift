internal import ArchiveStore
internal import ArgumentParser
internal import Lifecycle
internal import SystemIO

/// How a command that reads a repository, and changes nothing, tells how far it is.
struct ReadingOptions: ParsableArguments {
  @Flag(
    name: .shortAndLong,
    help: "Say each minute how far it is, where no line on the terminal does.")
  var verbose = false

  /// Begins to show how far a reading is, until the command's words are out; a signal ends it.
  ///
  /// No line is drawn where results go into a pipe: what reads it, as a pager does, may have the same
  /// terminal, and may end the command by going away. Nor among bytes that go to a screen.
  func watch(
    _ repository: Repository, _ console: Console, of noun: String = "file", isQuiet: Bool,
    isBytes: Bool = false
  ) throws -> ReadingWatch {
    let watch = ReadingWatch(repository, of: noun, isStopping: StopSignals.isStopping)
    let isApart = console.goesToFile || (console.isTerminal && !isBytes)
    let isSilent = isQuiet || console.isJSON
    try console.show(
      watch,
      isSilent ? .onRequest : ProgressDisplay.Manner(canDraw: isApart, isVerbose: verbose))
    return watch
  }
}

extension ReadingWatch {
  /// Expects the bytes of what is to be dumped, where the snapshot says how many they are.
  func expect(_ source: SnapshotSource, at path: ByteString, of stored: StoredSnapshot) {
    counters.begin(path)
    switch source {
    case .single(let entry): counters.expect(files: 1, bytes: entry.contentSize ?? 0)
    case .folder where path.isEmpty: expectAll(of: stored, bytes: stored.snapshot.totals.bytes)
    case .folder: break
    }
  }

  /// Expects all files of a snapshot.
  func expectAll(of stored: StoredSnapshot, bytes: UInt64 = 0) {
    counters.expect(files: Int(clamping: stored.snapshot.totals.files), bytes: bytes)
  }
}

internal import ArchiveStore
internal import ArgumentParser
internal import Interchange
internal import Restore
internal import SnapshotQueries
internal import SystemIO

/// `sandboxctl dump SNAP:PATH`: writes a stored file, or a directory as an archive, to standard
/// output.
struct DumpCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "dump",
      abstract: "Write a stored file, or a directory as an archive, to standard output",
      usage: "sandboxctl dump <snap[:path]> [--tar | --merge-log] [<options>]",
      discussion: """
        \(SnapshotPath.help)

        The content of a file is written unchanged, a directory as a POSIX tar archive. A database \
        may have its latest changes in a log next to it: --tar writes both, --merge-log one merged \
        database. See sandboxctl-dump(1).

        \(Examples.text([
          "sandboxctl dump latest:apps --repo repo > apps.tar",
          "sandboxctl dump latest:groups --repo repo | tar -t",
        ]))
        """)
  }

  @Argument(help: ArgumentHelp("The snapshot and a path in it.", valueName: "snap[:path]"))
  var what: ByteString

  @Flag(help: "Write even a single file as an archive, together with the log of a database.")
  var tar = false

  @Flag(help: "Write a database merged with its log.")
  var mergeLog = false

  @Flag(
    name: .shortAndLong,
    help: "Omit notes about logs and about entries that an archive cannot contain.")
  var quiet = false

  @Flag(help: "Write the data even if no trusted signer signed the snapshot.")
  var allowUnsigned = false

  // Read by `ConfiguredCommandLine`.
  @Option(help: OutputOptions.profileHelp)
  var profile: String?

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ReadingOptions

  static var precedence: [OptionPrecedence] { OptionPrecedence.oneOf(["tar"], ["merge-log"]) }

  func validate() throws {
    if tar, mergeLog {
      throw ValidationError("'--tar' and '--merge-log' cannot be used together.")
    }
  }

  func run(_ console: Console) throws -> ExitStatus {
    let snapshotPath = try SnapshotPath(what)
    let query = try progress.open(repository, console, isQuiet: quiet, isBytes: true)
    let stored = try query.find(snapshotPath.name, fitting: snapshotPath.fits)
    if !allowUnsigned {
      try query.repository.requireTrusted(stored, "dump", unless: "'--allow-unsigned'")
    }
    let top = try snapshotPath.logicalPath(in: stored.snapshot)
    let reader = try query.beginReading(takesLease: true)
    defer { console.warn(of: reader.remarks) }
    let sink = { (bytes: Span<UInt8>) throws in try console.result(bytes: bytes) }
    let source = try reader.source(top, in: stored)
    query.watch.expect(source, at: top, of: stored)
    console.remarks(
      stored.snapshot.uncertainDatabases(in: top), as: .warning(""), all: false)
    switch source {
    case .single(let entry) where mergeLog:
      let content = try content(of: entry, at: top)
      return try writeMerged(content, at: top, in: stored, from: reader, console, to: sink)
    // A configuration sets it for the files that are dumped.
    case .directory where mergeLog && console.givenOptions.contains("merge-log"):
      throw UsageError(
        .notAFile,
        "cannot merge a log into '\(snapshotPath.hasPath ? top : "the whole snapshot")': "
          + "it is a directory",
        hint: "give the path of the database")
    case .single(let entry) where !tar:
      let logs = try logs(beside: top, in: stored, from: reader, console)
      if !quiet { show(of: logs.found.map(\.path), console) }
      try reader.writeBytes(of: try content(of: entry, at: top), to: sink)
      return logs.areAll ? .done : .damaged
    case .single(let entry): return try archive(entry, at: top, in: stored, from: reader, console)
    case .directory(let tree, _):
      try console.refuseTerminal()
      return try archive(of: stored, from: reader, console) { export, archive in
        try export.write(tree, to: &archive)
      }
    }
  }

  /// Writes a file, with the logs of a database, as a tar archive to standard output.
  private func archive(
    _ entry: TreeEntry, at path: ByteString, in stored: StoredSnapshot,
    from reader: RepositoryReader, _ console: Console
  ) throws -> ExitStatus {
    try console.refuseTerminal()
    let logs = try logs(beside: path, in: stored, from: reader, console)
    let status = try archive(of: stored, from: reader, console) { export, archive in
      for (path, entry) in [(path, entry)] + logs.found {
        if let name = path.lastComponent { try export.write(entry, as: name, to: &archive) }
      }
    }
    return logs.areAll ? status : .damaged
  }

  /// Writes a tar archive to standard output.
  private func archive(
    of stored: StoredSnapshot, from reader: RepositoryReader, _ console: Console,
    _ body: (inout ExportOperation, inout TarSink) throws -> Void
  ) throws -> ExitStatus {
    var archive = try TarSink(to: console.archiveOutput, names: OwnerNames(of: stored.snapshot))
    var export = ExportOperation(from: reader) { show($1, as: $0, console) }
    try body(&export, &archive)
    try archive.finish()
    console.show(archive.skipped, "not dumped: ", all: false)
    return export.damaged == 0 ? .done : .damaged
  }

  private func writeMerged(
    _ content: Content, at path: ByteString, in stored: StoredSnapshot,
    from reader: RepositoryReader, _ console: Console, to sink: (Span<UInt8>) throws -> Void
  ) throws -> ExitStatus {
    let merged = try MergedDump(
      of: content, at: path, in: stored, from: reader, cache: Host.cacheDirectory)
    for log in quiet ? [] : merged.unused {
      console.note("the database's log '\(log)' has no changes for it")
    }
    try merged.write(to: sink)
    return .done
  }

  private func content(of entry: TreeEntry, at path: ByteString) throws -> Content {
    if case .file(let content) = entry.node { return content }
    throw OperationError(
      .failed, code: .notAFile, "write the bytes of", subject: path,
      reason: "it is a \(entry.kindName)",
      hint: "'--tar' writes it as an archive")
  }

  /// Returns the logs beside a file, and whether these are all. Damage that may hide others is
  /// reported.
  private func logs(
    beside path: ByteString, in stored: StoredSnapshot, from reader: RepositoryReader,
    _ console: Console
  ) throws -> (found: [(path: ByteString, entry: TreeEntry)], areAll: Bool) {
    var areAll = true
    let found = try reader.sidecars(of: path, in: stored) { remark in
      areAll = false
      show(remark, as: .damaged, console)
    }
    return (found, areAll)
  }

  private func show(of logs: [ByteString], _ console: Console) {
    for log in logs {
      console.note(
        "the database's log '\(log)' is not included: '--tar' writes both, "
          + "'--merge-log' one merged file"
      )
    }
  }

  private func show(_ remark: PathRemark, as what: ExportOperation.Exclusion, _ console: Console) {
    console.show(remark, as: what, isQuiet: quiet)
  }
}

extension Console {
  /// Refuses to write an archive to a terminal.
  func refuseTerminal() throws {
    guard isTerminal else { return }
    throw UsageError(
      .outputIsTerminal, "cannot write an archive to a terminal",
      hint: "redirect it: 'sandboxctl dump … | tar -t', or '> archive.tar'")
  }

  /// Prints that an entry is not in an archive.
  func show(_ remark: PathRemark, as what: ExportOperation.Exclusion, isQuiet: Bool) {
    switch what {
    case .damaged: warning("damaged: \(remark.path): \(remark.remark)")
    case .unfit: if !isQuiet { note("\(remark.path): \(remark.remark)") }
    }
  }

  /// Standard output as the output of an archive.
  var archiveOutput: ByteOutput {
    return { bytes throws(InterchangeError) in
      do {
        try self.result(bytes: bytes)
      } catch {
        let cause = error as? SystemError
        throw InterchangeError(
          .system, "write", subject: "standard output", reason: cause?.reason ?? "\(error)",
          hint: cause?.hint, cause: cause)
      }
    }
  }
}

extension ReadingWatch {
  /// Sets the expected number of bytes of a dump, if the snapshot has it.
  fileprivate func expect(
    _ source: SnapshotSource, at path: ByteString, of stored: StoredSnapshot
  ) {
    counters.begin(path)
    switch source {
    case .single(let entry): counters.expect(files: 1, bytes: entry.contentSize ?? 0)
    case .directory where path.isEmpty: expectAll(of: stored, bytes: stored.snapshot.totals.bytes)
    case .directory: break
    }
  }
}

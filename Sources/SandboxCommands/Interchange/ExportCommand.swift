internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Interchange
internal import Restore
internal import SnapshotQueries
internal import SystemIO

/// `sandboxctl export`: writes snapshots in the formats of other programs.
struct ExportCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "export",
      abstract: "Write snapshots in the formats of other programs",
      discussion: """
        Writes what a snapshot contains as an archive that other programs read. 'export all' writes \
        a whole repository as one dated archive for each snapshot. A file that exists is never \
        replaced. See sandboxctl-export(1).

        \(Examples.text([
          "sandboxctl export tar latest apps.tar.zst --repo repo"
        ]))
        """,
      subcommands: [
        Tar.self, Zip.self, ITunes.self, Android.self,
        Snap.self, XcodeData.self, Package.self,
        All.self,
      ])
  }
}

extension ExportCommand {
  /// `sandboxctl export tar`: writes a tar archive.
  struct Tar: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "tar",
        abstract: "Write a snapshot, or a path in one, as a tar archive",
        usage: "sandboxctl export tar [<snap[:path]>] <file> [--compress <method>] [<options>]",
        discussion: """
          Writes a POSIX archive (pax) with nanoseconds, attributes, access control lists, hard \
          links and holes, which GNU tar and bsdtar extract. SNAP defaults to 'latest' and takes \
          the forms that 'sandboxctl dump' accepts. '-' writes to standard output.

          \(Examples.text([
            "sandboxctl export tar apps.tar.zst --repo repo",
            "sandboxctl export tar latest:groups - --repo repo > groups.tar",
          ]))
          """)
    }

    @OptionGroup var export: ArchiveExportOptions

    @Option(
      help: ArgumentHelp(
        "The compression: none, gzip or zstd (default: by the ending of the file's name).",
        valueName: "method"))
    var compress: ArchiveCompression?

    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var progress: ReadingOptions
    @OptionGroup var list: ListOptions
    @OptionGroup var output: OutputOptions

    static var precedence: [OptionPrecedence] { ArchiveExportOptions.precedence }

    static func choices(of arguments: [String]) -> Set<String> {
      ArchiveExportOptions.choices(of: arguments)
    }

    func run(_ console: Console) throws -> ExitStatus {
      try ArchiveExportOptions.requireName(export.file, of: .tar, compress)
      let compression = compress ?? ArchiveCompression.ofName(export.file)
      return try ArchiveExport(
        export: export, repository: repository, progress: progress, list: list, output: output,
        isCompressed: compression != .none
      ).run(console) { content, bytes in
        try TarSink(
          to: bytes, compression: compression, names: OwnerNames(of: content.stored.snapshot))
      }
    }
  }

  /// `sandboxctl export zip`: writes a zip archive.
  struct Zip: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "zip",
        abstract: "Write a snapshot, or a path in one, as a zip archive",
        usage: "sandboxctl export zip [<snap[:path]>] <file> [<options>]",
        discussion: """
          Writes files, directories and symbolic links with permissions, owners and times in \
          seconds. Zip has no attributes, access control lists or hard links, which are reported, \
          and no FIFOs and device files, for which the exit status is 3. SNAP defaults to 'latest'.

          \(Examples.text([
            "sandboxctl export zip latest:notebook/Documents documents.zip --repo repo"
          ]))
          """)
    }

    @OptionGroup var export: ArchiveExportOptions
    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var progress: ReadingOptions
    @OptionGroup var list: ListOptions
    @OptionGroup var output: OutputOptions

    static var precedence: [OptionPrecedence] { ArchiveExportOptions.precedence }

    static func choices(of arguments: [String]) -> Set<String> {
      ArchiveExportOptions.choices(of: arguments)
    }

    func run(_ console: Console) throws -> ExitStatus {
      try ArchiveExportOptions.requireName(export.file, of: .zip)
      return try ArchiveExport(
        export: export, repository: repository, progress: progress, list: list, output: output
      ).run(console) { _, bytes in try ZipSink(to: bytes) }
    }
  }
}

extension ArchiveCompression: ExpressibleByArgument {}

/// The content to export, and the file.
struct ArchiveExportOptions: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "The snapshot and a path in it (default: latest), and the file or '-'.",
      valueName: "snap[:path] file"))
  var words: [ByteString] = []

  @Flag(help: "Write the data even if no trusted signer signed the snapshot.")
  var allowUnsigned = false

  func validate() throws {
    guard (1...2).contains(words.count) else {
      throw ValidationError("Give a file, or a snapshot and a file.")
    }
    try words.requireTarget("file")
  }

  /// An archive on standard output overrides JSON that the configuration chooses.
  static var precedence: [OptionPrecedence] {
    OptionPrecedence.choosing([OptionPrecedence.standardOutput], replaces: ["json"])
  }

  static func choices(of arguments: [String]) -> Set<String> {
    arguments.last == "-" ? [OptionPrecedence.standardOutput] : []
  }

  /// The snapshot and the path in it.
  var what: ByteString { words.count > 1 ? words[0] : "latest" }

  /// The file to write.
  var file: ByteString { words.last ?? "-" }

  /// Whether the archive is written to standard output.
  var isStandardOutput: Bool { file == "-" }
}

extension [ByteString] {
  /// Refuses arguments of an export that consist of a snapshot only: 'latest' would be the name of
  /// the file to write.
  func requireTarget(_ kind: String) throws(ValidationError) {
    guard count == 1, let word = first else { return }
    let name = ByteString(word.bytes.prefix { $0 != UInt8(ascii: ":") })
    guard name.utf8.flatMap(SnapshotListing.stepsBack) != nil else { return }
    throw ValidationError(
      "No \(kind) is given for the snapshot '\(word)'. Write './\(word)' for a \(kind) of that name."
    )
  }
}

/// The content of a snapshot that is exported, opened for reading.
struct ExportedContent {
  let stored: StoredSnapshot
  /// The logical path of the content; empty for the whole snapshot.
  let top: ByteString
  let reader: RepositoryReader
  let source: SnapshotSource

  /// Opens the content that `SNAP[:PATH]` names.
  ///
  /// - Parameters:
  ///   - app: The app that the snapshot must have; nil for that of the path.
  ///   - resolve: Returns the logical path of the content.
  init(
    of what: ByteString, having app: ByteString? = nil, allowUnsigned: Bool,
    in query: SnapshotQuery,
    resolve: (SnapshotPath, Snapshot) throws -> ByteString = { try $0.logicalPath(in: $1) }
  ) throws {
    let snapshotPath = try SnapshotPath(what)
    let stored = try query.find(snapshotPath.name) { head in
      app.map { name in name.utf8.map(head.holds) ?? false } ?? snapshotPath.fits(head)
    }
    if !allowUnsigned {
      try query.repository.requireTrusted(stored, "export", unless: "'--allow-unsigned'")
    }
    let top = try resolve(snapshotPath, stored.snapshot)
    let reader = try query.beginReading(takesLease: true)
    (self.stored, self.top, self.reader) = (stored, top, reader)
    source = try reader.source(top, in: stored)
  }

  /// The content of a whole snapshot.
  init(whole stored: StoredSnapshot, from reader: RepositoryReader) throws {
    (self.stored, self.top, self.reader) = (stored, "", reader)
    source = try reader.source("", in: stored)
  }

  /// Writes the content to a sink. Warns of databases that were in use.
  ///
  /// - Parameter keepsPaths: whether the sink receives logical paths instead of paths relative to
  ///   the content.
  func write<Sink: EntrySink & ~Copyable>(
    to sink: inout Sink, keepsPaths: Bool, isQuiet: Bool, _ console: Console
  ) throws -> ExportCounts {
    console.remarks(stored.snapshot.uncertainDatabases(in: top), as: .warning(""), all: false)
    var above: ByteString = ""
    if keepsPaths {
      above = top
      if case .single = source { above = ByteString(joining: top.components.dropLast()) }
    }
    return try console.export(
      source, named: top.lastComponent ?? "", from: reader, below: above, to: &sink,
      isQuiet: isQuiet)
  }
}

extension ExportedContent {
  /// Writes the content to a sink that makes a directory, prints the result, and returns the exit
  /// status.
  ///
  /// - Parameters:
  ///   - size: The size of what the sink wrote in bytes.
  ///   - expected: The words for the entries that the format never contains; nil if there are none.
  func write<Sink: EntrySink & ~Copyable>(
    toDirectory directory: ByteString, by sink: inout Sink, size: (borrowing Sink) -> UInt64,
    expected: (member: String, note: String)? = nil, list: ListOptions, _ console: Console,
    _ output: OutputOptions
  ) throws -> ExitStatus {
    let written = try write(to: &sink, keepsPaths: true, isQuiet: output.quiet, console)
    try sink.finish()
    let skipped = sink.skipped
    console.show(skipped, "not exported: ", all: list.all)
    try written.show(
      as: directory, without: skipped, of: stored, size: size(sink),
      with: expected.map {
        [JSON.Member($0.member, .integer(Int64(skipped.expectedCount)))]
      } ?? [], console, output)
    if let expected, skipped.expectedCount > 0, !output.quiet {
      console.note("\(expected.note): \(Sizes.count(skipped.expectedCount, "entry"))")
    }
    return written.status(skipped)
  }
}

/// The export of a snapshot to a file with the options of its command.
struct ArchiveExport {
  let export: ArchiveExportOptions
  let repository: RepositoryOptions
  let progress: ReadingOptions
  let list: ListOptions
  let output: OutputOptions
  /// Whether the sink receives logical paths.
  var keepsPaths = false
  /// Returns the entries that rules exclude, after the export; nil if there are no rules.
  var excluded: () -> AutoBackupExclusions? = { nil }
  /// Whether the size of the archive is not known because it is compressed.
  var isCompressed = true

  /// Makes the sink of an archive.
  typealias MakeSink<Sink: EntrySink & ~Copyable> =
    (ExportedContent, @escaping ByteOutput) throws -> Sink

  func run<Sink: EntrySink & ~Copyable>(
    _ console: Console, _ makeSink: MakeSink<Sink>
  ) throws -> ExitStatus {
    if export.isStandardOutput {
      if output.json {
        throw UsageError(
          .optionsConflict, "'--json' and an archive on standard output cannot be combined",
          hint: "name a file, or omit '--json'")
      }
      try console.refuseTerminal()
    }
    let query = try progress.open(
      repository, console, isQuiet: output.quiet, isBytes: export.isStandardOutput)
    if !export.isStandardOutput {
      try repository.choice().requireApart(
        from: export.file, hint: "name a file outside of the repository")
    }
    let content = try ExportedContent(
      of: export.what, allowUnsigned: export.allowUnsigned, in: query)
    defer { console.warn(of: content.reader.remarks) }
    let file = export.isStandardOutput ? nil : try OutputFile(path: export.file)
    if file != nil {
      try content.requireRoom(in: export.file.dirname, isCompressed: isCompressed, console)
    }
    var sink = try makeSink(content, file?.write ?? console.archiveOutput)
    let written = try content.write(
      to: &sink, keepsPaths: keepsPaths, isQuiet: output.quiet, console)
    try sink.finish()
    try file?.commit()
    console.show(sink.skipped, "not exported: ", all: list.all)
    if let file {
      try written.show(
        as: export.file, without: sink.skipped, excluded: excluded(), of: content.stored,
        size: file.size, console, output)
    }
    return written.status(sink.skipped)
  }
}

/// The numbers of an export.
struct ExportCounts {
  let entries: Int
  let damaged: Int

  /// Returns the exit status.
  func status(_ skipped: SkippedEntries) -> ExitStatus {
    if damaged > 0 { return .damaged }
    // Bundles are expected to be missing, unless nothing else was requested.
    let isNothing = skipped.expectedCount > 0 && skipped.entryCount >= entries
    return isNothing || skipped.entryCount > skipped.expectedCount ? .doneInPart : .done
  }

  /// Prints the result.
  ///
  /// - Parameters:
  ///   - path: the file or directory that was written.
  ///   - excluded: the entries that rules exclude; nil without rules.
  ///   - size: its size in bytes.
  ///   - others: further members of the JSON object.
  func show(
    as path: ByteString, without skipped: SkippedEntries, excluded: AutoBackupExclusions? = nil,
    of stored: StoredSnapshot, size: UInt64, with others: [JSON.Member] = [], _ console: Console,
    _ output: OutputOptions
  ) throws {
    let count = entries - skipped.entryCount - (excluded?.entries ?? 0)
    if output.json {
      let members: [JSON.Member] = [
        JSON.Member("id", .string(stored.id.hex)),
        JSON.Member("size", .integer(Int64(clamping: size))),
        JSON.Member("entries", .integer(Int64(count))),
        JSON.Member("damaged", .integer(Int64(damaged))),
        JSON.Member("skipped", .integer(Int64(skipped.entryCount - skipped.expectedCount))),
        JSON.Member("dropped_properties", .integer(Int64(skipped.propertyCount))),
      ]
      try console.result(.object(JSON.path(path) + members + (excluded?.members ?? []) + others))
    } else if !output.quiet {
      try console.result(
        "wrote \(Sizes.count(count, "entry")) of snapshot "
          + "\(stored.id.hex.prefix(8)) to '\(path)' (\(Sizes.text(size)))")
    }
  }
}

extension Console {
  /// Writes a directory with its own entry, or a single entry under its name, to a sink.
  ///
  /// - Parameter above: the path above the written ones; empty for none.
  func export<Sink: EntrySink & ~Copyable>(
    _ source: SnapshotSource, named name: ByteString, from reader: RepositoryReader,
    below above: ByteString = "", to sink: inout Sink, isQuiet: Bool
  ) throws -> ExportCounts {
    var export = ExportOperation(from: reader, below: above) {
      self.show($1, as: $0, isQuiet: isQuiet)
    }
    switch source {
    case .directory(let tree, let entry): try export.write(entry, tree, to: &sink)
    case .single(let entry): try export.write(entry, as: name, to: &sink)
    }
    return ExportCounts(entries: export.written, damaged: export.damaged)
  }
}

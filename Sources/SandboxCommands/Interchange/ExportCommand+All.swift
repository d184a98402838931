internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Interchange
internal import SnapshotQueries
internal import SystemIO

extension ExportCommand {
  /// `sandboxctl export all`: writes each snapshot as a dated tar archive.
  struct All: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "all",
        abstract: "Write all snapshots as dated tar archives into a directory",
        usage: "sandboxctl export all <dir> [--compress <method>] [<options>]",
        discussion: """
          Writes each snapshot into a file of its own, named by its time and id, for example \
          2026-11-01T10.30.00Z-1a2b3c4d5e6f.tar.zst. Files that exist are complete and are not \
          written again, so an interrupted export continues, and a later one adds new snapshots. \
          The archives are not encrypted, and only the user can read them.

          \(Examples.text([
            "sandboxctl export all archives --repo repo",
            "sandboxctl export all archives --app notebook --repo repo",
          ]))
          """)
    }

    @Argument(
      help: ArgumentHelp(
        "The directory, which is created if it does not exist.", valueName: "dir"),
      completion: .directory)
    var directory: ByteString

    @OptionGroup var filter: SnapshotFilterOptions

    @Option(
      help: ArgumentHelp("The compression: none, gzip or zstd.", valueName: "method"))
    var compress = ArchiveCompression.zstd

    @Flag(help: "Write snapshots even if no trusted signer signed them.")
    var allowUnsigned = false

    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var progress: ReadingOptions
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      let (choice, hint) = (try repository.choice(), "name a directory outside of the repository")
      if try choice.isDirectory(directory) {
        throw UsageError(.invalidValue, "'\(directory)' is the repository", hint: hint)
      }
      try choice.requireApart(from: directory, hint: hint)
      let query = try progress.open(repository, console, isQuiet: output.quiet)
      let found = try query.heads()
      for error in found.damaged { console.warning(error.description) }
      let export = try RepositoryExport(into: directory, compression: compress)
      var run = Run(command: self, export: export, query: query, console: console)
      let heads = found.heads.filter(filter.isSelected)
      for head in heads { try run.write(head) }
      try run.showSummary(of: heads.count, unreadable: found.damaged.count)
      return run.lost + found.damaged.count > 0 ? .damaged : .done
    }
  }
}

extension ExportCommand.All {
  /// An export in progress.
  private struct Run {
    let command: ExportCommand.All
    let export: RepositoryExport
    let query: SnapshotQuery
    let console: Console
    private var reader: RepositoryReader?
    private var written = 0
    private var present = 0
    private var bytes: UInt64 = 0
    /// The snapshots that cannot be read completely, or are not trusted.
    private(set) var lost = 0

    init(
      command: ExportCommand.All, export: RepositoryExport, query: SnapshotQuery, console: Console
    ) {
      (self.command, self.export, self.query, self.console) = (command, export, query, console)
    }

    /// Writes the archive of a snapshot unless it exists. A snapshot that cannot be read does not
    /// stop the others.
    mutating func write(_ head: SnapshotHead) throws {
      if try export.hasArchive(of: head.id, at: head.time) {
        present += 1
        return try show(head, "present", size: nil)
      }
      do {
        let (size, damaged) = try writeArchive(head)
        written += 1
        bytes += size
        if damaged > 0 { lost += 1 }
        try show(head, damaged > 0 ? "incomplete" : "written", size: size)
      } catch let error as StoreError where error.kind == .damaged {
        lost += 1
        console.warning(error.description)
        try show(head, "failed", size: nil)
      }
    }

    private mutating func writeArchive(_ head: SnapshotHead) throws -> (UInt64, damaged: Int) {
      let stored = try query.repository.snapshot(head.id)
      if !command.allowUnsigned {
        try query.repository.requireTrusted(stored, "export", unless: "'--allow-unsigned'")
      }
      let reader = try reader ?? query.beginReading(takesLease: true)
      self.reader = reader
      if command.compress == .none {
        try ExportedContent(whole: stored, from: reader).requireRoom(
          in: command.directory, isCompressed: false, console)
      }
      let (console, isQuiet) = (console, command.output.quiet)
      var damaged = 0
      let outcome = try export.write(stored) { sink in
        let source = try reader.source("", in: stored)
        damaged = try console.export(
          source, named: "", from: reader, to: &sink, isQuiet: isQuiet
        ).damaged
        console.show(sink.skipped, "not exported: ", all: false)
        return damaged == 0
      }
      guard case .written(let size) = outcome else { return (0, damaged) }
      return (size, damaged)
    }

    private func show(_ head: SnapshotHead, _ outcome: String, size: UInt64?) throws {
      let name = export.name(
        of: head.id, at: head.time, isComplete: outcome != "incomplete")
      if command.output.json {
        var members = JSON.path(name, named: "file")
        members.append(JSON.Member("id", .string(head.id.hex)))
        members.append(JSON.Member("time", .string(head.time.rfc3339)))
        members.append(JSON.Member("outcome", .string(outcome)))
        if let size { members.append(JSON.Member("size", .integer(Int64(clamping: size)))) }
        try console.result(.object(members))
      } else if !command.output.quiet, outcome != "present" {
        let text = size.map { " (\(Sizes.text($0)))" } ?? ""
        try console.result("\(outcome): \(name)\(text)")
      }
    }

    /// Prints the totals.
    func showSummary(of snapshots: Int, unreadable: Int) throws {
      if command.output.json {
        let summary: JSON = [
          "snapshots": .integer(Int64(snapshots)), "written": .integer(Int64(written)),
          "present": .integer(Int64(present)), "lost": .integer(Int64(lost)),
          "unreadable": .integer(Int64(unreadable)), "bytes": .integer(Int64(clamping: bytes)),
        ]
        let line: JSON = ["summary": summary]
        try console.result(line)
      } else if !command.output.quiet {
        let others = present > 0 ? ", \(Sizes.count(present)) existed before" : ""
        try console.result(
          "wrote \(Sizes.count(written)) of \(Sizes.count(snapshots, "snapshot")) with "
            + "\(Sizes.text(bytes)) to '\(command.directory)'\(others)")
      }
      if let reader { console.warn(of: reader.remarks) }
    }
  }
}

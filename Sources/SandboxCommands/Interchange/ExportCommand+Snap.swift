internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Interchange
internal import SandboxModel
internal import SystemIO

extension ExportCommand {
  /// `sandboxctl export snap`: writes snapshots of snapd.
  struct Snap: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "snap",
        abstract: "Write the data of snaps as a snapshot of snapd",
        usage: "sandboxctl export snap [<snap[:path]>] <file> [--user <name>] [<options>]",
        discussion: """
          Writes a file for 'snap import-snapshot', after which 'snap restore' puts the data back. \
          A file with the ending .zip becomes the snapshot of one snap, as 'snap save' makes it. \
          SNAP defaults to 'latest' and must be of the layout snap. Anything that a snapshot of \
          snapd cannot contain, such as old revisions, is reported, and the exit status is 3. '-' \
          writes to standard output.

          \(Examples.text([
            "sandboxctl export snap latest:apps/editor editor.snapshot"
          ]))
          """)
    }

    @OptionGroup var export: ArchiveExportOptions

    @Option(
      help: ArgumentHelp(
        "The user to whom snapd restores the data (default: its owner).", valueName: "name"))
    var user: ByteString?

    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var progress: ReadingOptions
    @OptionGroup var list: ListOptions
    @OptionGroup var output: OutputOptions

    static var precedence: [OptionPrecedence] { ArchiveExportOptions.precedence }

    static func choices(of arguments: [String]) -> Set<String> {
      ArchiveExportOptions.choices(of: arguments)
    }

    func run(_ console: Console) throws -> ExitStatus {
      if let user, user.utf8 == nil || user.nameFault != nil {
        throw UsageError(
          .invalidValue, "'\(user)' is not the name of a user", hint: "give a login name")
      }
      try ArchiveExportOptions.requireName(export.file, of: .snap)
      return try ArchiveExport(
        export: export, repository: repository, progress: progress, list: list, output: output,
        keepsPaths: true
      ).run(console) { content, bytes in
        try content.requireSnaps()
        let snapshot = content.stored.snapshot
        return try SnapSink(
          to: bytes, form: .ofName(export.file),
          SnapSink.Facts(
            snaps: try content.snaps(), user: user, names: OwnerNames(of: snapshot),
            time: snapshot.time))
      }
    }
  }
}

extension ExportedContent {
  /// Refuses a snapshot of another layout, whose data snapd would restore to locations where no
  /// snap looks for it.
  fileprivate func requireSnaps() throws(InterchangeError) {
    let layout = stored.snapshot.device.layout
    guard layout != Layout.snap.rawValue else { return }
    throw InterchangeError(
      .unrepresentable, "export as a snapshot of snapd",
      subject: ByteString(String(stored.id.hex.prefix(8))),
      reason: "the snapshot is of the layout '\(layout)', not of snaps",
      hint: "'sandboxctl export tar' writes any snapshot")
  }

  /// Returns the metadata of the snaps: that of the snapshot, with what an import has kept.
  fileprivate func snaps() throws -> [ByteString: SnapMetadata] {
    var snaps = SnapMetadata.all(in: stored.snapshot)
    for (name, snap) in snaps {
      if let imported = try imported(snap) { snaps[name]?.add(from: imported) }
    }
    return snaps
  }

  /// Returns the metadata that an import kept; nil if there is none or it cannot be read, which
  /// `check` reports.
  private func imported(_ snap: SnapMetadata) throws -> SnapMetadata? {
    var bytes: [UInt8] = []
    do {
      guard let entry = try reader.entry(at: snap.importedPath, in: stored.snapshot.tree),
        case .file(let content) = entry.node, content.size <= SnapMetadata.sizeLimit
      else { return nil }
      try reader.writeBytes(of: content) { bytes.append($0) }
    } catch let error as StoreError where error.kind == .damaged {
      return nil
    }
    return try? SnapMetadata(parsing: bytes)
  }
}

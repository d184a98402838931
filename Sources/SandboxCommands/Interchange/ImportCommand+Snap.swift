internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Interchange
internal import SandboxModel
internal import SystemIO

extension ImportCommand {
  /// `sandboxctl import snap`: imports a snapshot of snapd.
  struct Snap: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "snap",
        abstract: "Import a snapshot of snapd",
        usage: "sandboxctl import snap <file> [--user <name>] [<options>]",
        discussion: """
          Imports a file of 'snap export-snapshot', or one of 'snap save' (a zip archive in \
          /var/lib/snapd/snapshots), as a backup of the layout snap. An archive whose SHA3-384 \
          does not match the metadata is reported and not imported, and the exit status is 3. The \
          metadata, with the configuration of the snap, is kept in folders/snapd. '-' reads \
          standard input.

          \(Examples.text([
            "sandboxctl export snap latest:apps/editor editor.snapshot",
            "sandboxctl import snap editor.snapshot --repo repo",
          ]))
          """)
    }

    @Argument(
      help: ArgumentHelp("The snapshot, or '-' for standard input.", valueName: "file"),
      completion: .file())
    var file: ByteString

    @Option(
      help: ArgumentHelp(
        "The user whose data to import, if the snapshot has that of several users.",
        valueName: "name"))
    var user: ByteString?

    @OptionGroup var options: LogicalImport

    func run(_ console: Console) throws -> ExitStatus {
      let location = file == "-" ? "/dev/stdin" : file.absolute ?? file
      return try options.run(console) { isStopping in
        let archive = file == "-" ? try ArchiveFile() : try ArchiveFile(path: file)
        archive.isStopping = isStopping
        return try SnapSource.open(archive, user: user)
      } placement: { source in
        ImportRequest.Placement(snapshotAt: location, of: source.foundUser)
      } origin: { source in
        let count = source.snaps.count
        return LogicalImport.Origin(
          name: Sizes.count(count, "snap"), format: source.formatName,
          members: [JSON.Member("snaps", .integer(Int64(count)))])
      }
    }
  }
}

extension ImportRequest.Placement {
  /// The placement of a snapshot of snapd, whose paths are logical paths. It does not name its
  /// system: all snapshots of one user have the same source.
  fileprivate init(snapshotAt location: ByteString, of user: ByteString?) {
    self.init(
      ofLogicalPathsFrom: "import:snap" + (user.map { ":\($0)" } ?? ""), platform: "snap",
      layout: .snap, in: location)
  }
}

internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Interchange
internal import SandboxModel
internal import SystemIO

/// `sandboxctl import`: stores archives and backups of other programs as snapshots.
struct ImportCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "import",
      abstract: "Store an archive or a backup of another program as a snapshot",
      discussion: """
        The entries go straight into the repository: nothing is extracted, no link is followed, \
        and data that the repository has is not stored again. Entries that cannot be imported are \
        reported, and the exit status is 3. See sandboxctl-import(1).

        \(Examples.text([
          "sandboxctl import tar photos.tar.zst --repo repo"
        ]))
        """,
      subcommands: [
        Tar.self, Zip.self, ITunes.self, Android.self,
        Snap.self, XcodeData.self, Package.self,
        Restic.self, Borg.self, Kopia.self,
      ])
  }
}

extension ImportCommand {
  /// `sandboxctl import tar`: imports an archive of any format that libarchive reads.
  struct Tar: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "tar",
        abstract: "Import a tar, cpio, 7-Zip or other archive",
        usage: "sandboxctl import tar <file> [--name <name>] [--time <time>] [<options>]",
        discussion: """
          Imports the archive as the directory folders/NAME of a new snapshot, with times, owners, \
          attributes, access control lists, hard links and holes. The format and the compression \
          are recognized: tar, cpio, zip, 7-Zip, ISO 9660, cab, rar, xar and others, with gzip, \
          bzip2, xz, zstd, lz4 and others. From a damaged archive, all complete entries that can \
          be read are imported, with exit status 3; if its compressed data is damaged, any of them \
          may be wrong, which is reported and recorded. '-' reads standard input.

          \(Examples.text([
            "sandboxctl import tar photos-2024.tar.zst --name photos --repo repo",
            "tar -cz device | sandboxctl import tar - --name device --repo repo",
          ]))
          """)
    }

    @OptionGroup var archive: ArchiveImport

    func run(_ console: Console) throws -> ExitStatus { try archive.run(as: .any, console) }
  }

  /// `sandboxctl import zip`: imports a zip archive.
  struct Zip: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "zip",
        abstract: "Import a zip archive",
        usage: "sandboxctl import zip <file> [--name <name>] [--time <time>] [<options>]",
        discussion: """
          Imports the archive as the directory folders/NAME of a new snapshot, with the \
          permissions, owners and times that it has. Encrypted entries are skipped. From a file \
          the directory of the archive is read; from standard input ('-') only the entries, \
          which have no permissions of their own.

          \(Examples.text(["sandboxctl import zip documents.zip --repo repo"]))
          """)
    }

    @OptionGroup var archive: ArchiveImport

    func run(_ console: Console) throws -> ExitStatus { try archive.run(as: .zip, console) }
  }
}

/// The archive to import, and its snapshot.
struct ArchiveImportOptions: ParsableArguments {
  @Argument(
    help: ArgumentHelp("The archive, or '-' for standard input.", valueName: "file"),
    completion: .file())
  var file: ByteString

  @Option(
    help: ArgumentHelp(
      "The name of the directory in the snapshot (default: the file's name without its ending).",
      valueName: "name"))
  var name: ByteString?

  @OptionGroup var snapshot: ImportedSnapshotOptions

  /// Whether the archive is read from standard input.
  var isStandardInput: Bool { file == "-" }

  /// Returns the name of the directory as a component of a logical path.
  func component() throws -> ByteString {
    if name == nil, isStandardInput {
      throw UsageError(
        .optionRequired, "an archive from standard input has no name",
        hint: "name the directory in the snapshot with '--name NAME'")
    }
    let component = LogicalName(name ?? Self.baseName(file.lastComponent ?? "")).component
    if let fault = component.nameFault {
      throw UsageError(
        .invalidValue, "'\(name ?? file)' cannot be the name of a directory: \(fault)",
        hint: "give another one with '--name NAME'")
    }
    return component
  }

  private static let endings: Set<ByteString> = [
    "tar", "gz", "tgz", "bz2", "tbz", "xz", "txz", "zst", "tzst", "lz4", "lz", "lzma", "Z", "zip",
    "cpio", "7z", "iso", "cab", "rar", "xar", "lha",
  ]

  /// Returns a file's name without the endings of archives: `photos` of `photos.tar.zst`.
  private static func baseName(_ name: ByteString) -> ByteString {
    var parts = name.bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    while parts.count > 1, let last = parts.last, endings.contains(ByteString(last)) {
      parts.removeLast()
    }
    let base = ByteString(parts.joined(separator: CollectionOfOne(UInt8(ascii: "."))))
    return base.isEmpty ? name : base
  }
}

/// The snapshot that an import makes.
struct ImportedSnapshotOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The snapshot's time: source (that of the archive's file or the backup, if it has one), now, "
        + "or an RFC 3339 time such as 2024-01-31T10:30:00Z.", valueName: "time"))
  var time: ImportTime = .ofSource

  @Option(
    name: .customLong("tag"),
    help: ArgumentHelp(
      "Tags for the snapshot, separated by commas; may be repeated.", valueName: "tags"))
  var tags: [NewTags] = []

  /// Returns the request of an import into a repository.
  func request(
    _ placement: ImportRequest.Placement, to repository: Repository, counters: ProgressCounters,
    isStopping: @escaping @Sendable () -> Bool
  ) -> ImportRequest {
    var request = ImportRequest(
      placement, to: repository, tags: tags.flatMap(\.tags), counters: counters,
      isStopping: isStopping)
    request.time = time.value
    return request
  }
}

extension ImportRequest {
  /// Creates the request of an import into a repository, with the caches of this host.
  init(
    _ placement: Placement, to repository: Repository, tags: [String], counters: ProgressCounters,
    isStopping: @escaping @Sendable () -> Bool
  ) {
    self.init(placement, program: Version.text)
    indexCache = repository.hostIndexCache
    headCache = repository.hostHeadCache
    self.tags = tags
    self.counters = counters
    self.isStopping = isStopping
  }
}

/// The value of `--time` of an import.
enum ImportTime: ExpressibleByArgument, CustomStringConvertible {
  case ofSource
  case now
  case at(Timestamp)

  init?(argument: String) {
    switch argument {
    case "source": self = .ofSource
    case "now": self = .now
    default:
      // With its offset from UTC the time may be before the year 0, which a snapshot cannot have.
      guard let time = Timestamp(rfc3339: argument), Timestamp(rfc3339: time.rfc3339) == time
      else { return nil }
      self = .at(time)
    }
  }

  var description: String {
    switch self {
    case .ofSource: "source"
    case .now: "now"
    case .at(let time): time.rfc3339
    }
  }

  var value: ImportRequest.SnapshotTime {
    switch self {
    case .ofSource: .ofSource
    case .now: .now
    case .at(let time): .at(time)
    }
  }
}

/// The import of an archive: the options of its commands, and the work.
struct ArchiveImport: ParsableArguments {
  @OptionGroup var archive: ArchiveImportOptions
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var list: ListOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func run(as format: ArchiveReader.Format, _ console: Console) throws -> ExitStatus {
    let placement = ImportRequest.Placement.directory(
      try archive.component(),
      from: archive.isStandardInput ? "/dev/stdin" : archive.file.absolute ?? archive.file)
    let opened = try repository.open(console).repository
    let file = archive.isStandardInput ? try ArchiveFile() : try ArchiveFile(path: archive.file)
    let counters = ProgressCounters()
    let (report, name) = try progress.run(counters, output) { isStopping in
      file.isStopping = isStopping
      var source = try ArchiveSource(file, format: format)
      let report = try ImportOperation(
        to: opened,
        archive.snapshot.request(
          placement, to: opened, counters: counters, isStopping: isStopping)
      ).run(&source)
      return (report, source.formatName)
    }
    return try report.show(
      at: placement.prefix, format: name, in: opened, all: list.all, console, output)
  }
}

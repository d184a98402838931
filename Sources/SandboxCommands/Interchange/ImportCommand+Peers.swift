internal import ArchiveStore
internal import ArgumentParser
internal import Interchange
internal import SystemIO

extension ImportCommand {
  /// `sandboxctl import restic`: imports the snapshots of a restic repository.
  struct Restic: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "restic",
        abstract: "Import the snapshots of a restic repository",
        usage: "sandboxctl import restic <source> [--snapshot <id> ...] [<options>]",
        discussion: """
          Runs restic, which reads the repository, and stores each snapshot that was not imported \
          before, the oldest first, with its time, host, user and tags, below folders/HOST. The \
          password and options of restic are taken from the environment (RESTIC_PASSWORD_FILE). A \
          snapshot that restic cannot read completely is not imported, and the exit status is 3.

          \(Examples.text([
            "RESTIC_PASSWORD_FILE=word sandboxctl import restic old-restic --dry-run --repo repo",
            "RESTIC_PASSWORD_FILE=word sandboxctl import restic old-restic --repo repo",
          ]))
          """)
    }

    static var ownOptions: Set<String> { PeerImportOptions.own }

    @Argument(
      help: ArgumentHelp("The repository, as restic names it.", valueName: "source"),
      completion: .directory)
    var source: ByteString

    @OptionGroup var options: PeerImportOptions

    func run(_ console: Console) throws -> ExitStatus {
      try options.run(.restic, at: source, console)
    }
  }

  /// `sandboxctl import borg`: imports the archives of a borg repository.
  struct Borg: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "borg",
        abstract: "Import the archives of a borg repository",
        usage: "sandboxctl import borg <source> [--snapshot <id> ...] [<options>]",
        discussion: """
          Runs borg (version 1), which reads the repository, and stores each archive that was not \
          imported before, the oldest first, with its time, host, user and name, below \
          folders/HOST. The password and options of borg are taken from the environment \
          (BORG_PASSCOMMAND). An archive that borg cannot read completely is not imported, and the \
          exit status is 3.

          \(Examples.text([
            "BORG_PASSCOMMAND='cat word' sandboxctl import borg old-borg --dry-run --repo repo",
            "BORG_PASSCOMMAND='cat word' sandboxctl import borg old-borg --repo repo",
          ]))
          """)
    }

    static var ownOptions: Set<String> { PeerImportOptions.own }

    @Argument(
      help: ArgumentHelp("The repository, as borg names it.", valueName: "source"),
      completion: .directory)
    var source: ByteString

    @OptionGroup var options: PeerImportOptions

    func run(_ console: Console) throws -> ExitStatus {
      try options.run(.borg, at: source, console)
    }
  }

  /// `sandboxctl import kopia`: imports the snapshots of a kopia repository.
  struct Kopia: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "kopia",
        abstract: "Import the snapshots of a kopia repository",
        usage: "sandboxctl import kopia [<config>] [--snapshot <id> ...] [<options>]",
        discussion: """
          Runs kopia, which reads the repository that is connected, and stores each complete \
          snapshot that was not imported before, the oldest first, with its time, host, user and \
          tags, below folders/HOST. The password and options of kopia are taken from the \
          environment (KOPIA_PASSWORD). A snapshot that kopia cannot read completely is not \
          imported, and the exit status is 3.

          \(Examples.text([
            "sandboxctl import kopia --dry-run --repo repo",
            "sandboxctl import kopia old-kopia.config --name laptop --repo repo",
          ]))
          """)
    }

    static var ownOptions: Set<String> { PeerImportOptions.own }

    @Argument(
      help: ArgumentHelp(
        "The configuration file of the connected repository (default: kopia's).",
        valueName: "config"),
      completion: .file())
    var source: ByteString?

    @OptionGroup var options: PeerImportOptions

    func run(_ console: Console) throws -> ExitStatus {
      try options.run(.kopia, at: source, console)
    }
  }
}

/// The snapshots of another backup program to import, and the work.
struct PeerImportOptions: ParsableArguments {
  /// The options that have another meaning in other commands.
  static var own: Set<String> { ["snapshot"] }

  @Option(
    name: .customLong("snapshot"),
    help: ArgumentHelp(
      "Import only this snapshot: at least four digits of its id, or the name of an archive of "
        + "borg; may be repeated.", valueName: "id"))
  var snapshots: [String] = []

  @Option(
    help: ArgumentHelp(
      "The program to run (default: the one of the command's name in PATH).", valueName: "path"),
    completion: .file())
  var program: ByteString?

  @Option(
    help: ArgumentHelp(
      "The name of the directory in the snapshots (default: the host of each).",
      valueName: "name"))
  var name: ByteString?

  @Option(
    name: .customLong("tag"),
    help: ArgumentHelp(
      "Tags to add to the snapshots, separated by commas; may be repeated.", valueName: "tags"))
  var tags: [NewTags] = []

  @Flag(name: .shortAndLong, help: "Show what would be done, without doing it.")
  var dryRun = false

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var list: ListOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func run(
    _ kind: PeerKind, at location: ByteString?, _ console: Console
  ) throws -> ExitStatus {
    let peer = Peer(kind, at: location, program: program)
    let opened = try repository.open(console).repository
    let counters = ProgressCounters()
    return try progress.run(counters, output) { isStopping in
      let all = try peer.snapshots(isStopping: isStopping)
      var run = PeerImportRun(
        peer: peer, options: self, repository: opened, counters: counters, console: console)
      run.warn(of: all)
      return try run.importAll(try selected(of: all.snapshots, kind), isStopping)
    }
  }

  /// Returns the snapshots that the options name, or all.
  private func selected(of all: [PeerSnapshot], _ kind: PeerKind) throws -> [PeerSnapshot] {
    if snapshots.isEmpty { return all }
    var ids: Set<String> = []
    for name in snapshots {
      let found = all.filter { $0.isCalled(name) }
      guard let first = found.first else {
        throw OperationError(
          .notFound, code: .snapshotNotFound, "find the snapshot", subject: name,
          reason: "\(kind.rawValue) lists no snapshot with that id",
          hint: "list the snapshots with '--dry-run'")
      }
      if found.count > 1 {
        throw OperationError(
          .unclear, code: .snapshotAmbiguous, "find the snapshot", subject: name,
          reason: "\(found.count) ids begin with it", hint: "give more digits")
      }
      ids.insert(first.id)
    }
    return all.filter { ids.contains($0.id) }
  }
}

extension PeerSnapshot {
  /// Whether a name on the command line is the archive's name or a prefix of the id.
  fileprivate func isCalled(_ text: String) -> Bool {
    if !name.isEmpty, name.utf8.elementsEqual(text.utf8) { return true }
    return text.utf8.count >= 4 && id.utf8.starts(with: text.lowercased().utf8)
  }
}

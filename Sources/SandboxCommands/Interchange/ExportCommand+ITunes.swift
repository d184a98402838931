internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Interchange
internal import SnapshotQueries
internal import SystemIO

extension ExportCommand {
  /// `sandboxctl export itunes`: writes a backup as iTunes and the Finder do.
  struct ITunes: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "itunes",
        abstract: "Write a snapshot or device as a backup of iTunes, plain or encrypted",
        usage: """
          sandboxctl export itunes [<snap[:path]>] <dir> [--password-file <file>] [<options>]
          sandboxctl export itunes --from-device <root> <dir> [<options>]
          """,
        discussion: """
          Writes a backup in the form of iOS 10 and later into a new directory, encrypted if a \
          password is given, as iTunes and the Finder do. Otherwise anyone who can read the \
          directory can read all data. Such a backup contains no bundles of apps: a note counts \
          their entries. Anything else that it cannot contain is reported, and the exit status is \
          3. SNAP defaults to 'latest'. The containers of apps and groups keep their domains, even \
          if PATH names only a part of them. --from-device first backs up a device into the \
          repository, as 'sandboxctl backup' does.

          \(Examples.text([
            "sandboxctl export itunes latest:notebook/Documents/Attachments phone"
          ]))
          """)
    }

    @Argument(
      help: ArgumentHelp(
        "The snapshot and a path in it (default: latest), and the directory.",
        valueName: "snap[:path] dir"))
    var words: [ByteString] = []

    @Flag(help: "Write the data even if no trusted signer signed the snapshot.")
    var allowUnsigned = false

    @OptionGroup var password: BackupPasswordOptions
    @OptionGroup var source: ExportedDeviceOptions
    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var progress: ReadingOptions
    @OptionGroup var list: ListOptions
    @OptionGroup var output: OutputOptions

    static var precedence: [OptionPrecedence] {
      OptionPrecedence.choosing([OptionPrecedence.snapshot], replaces: ["from-device"])
    }

    static var needs: [OptionNeed] {
      OptionNeed.of("app", "policy", "with-bundles", other: "from-device")
    }

    static func choices(of arguments: [String]) -> Set<String> {
      arguments.count > 1 ? [OptionPrecedence.snapshot] : []
    }

    func validate() throws {
      guard (1...2).contains(words.count) else {
        throw ValidationError("Give a directory, or a snapshot and a directory.")
      }
      try words.requireTarget("directory")
    }

    func run(_ console: Console) throws -> ExitStatus {
      let directory = words.last ?? ""
      let choice = try repository.choice()
      try choice.requireApart(
        from: directory, hint: "name a directory outside of the repository")
      let device = try source.device()
      if device != nil, words.count > 1 {
        throw UsageError(
          .optionsConflict, "a snapshot and '--from-device' cannot be combined",
          hint: "give the directory to write only")
      }
      let secret = try password.read(of: directory, isNew: true, console)
      let made = try device.map { device in
        try MobileSyncSink.requireEmpty(directory)
        return try source.backUp(
          device, to: choice, progress: progress.ofOperations, list: list, output: output, console)
      }
      let query =
        try made.map { made in
          try progress.query(of: made.repository, console, isQuiet: output.quiet)
        } ?? progress.open(repository, console, isQuiet: output.quiet)
      let content = try ExportedContent(
        of: made.map { ByteString($0.stored.id.hex) } ?? (words.count > 1 ? words[0] : "latest"),
        allowUnsigned: allowUnsigned || made != nil, in: query)
      defer { console.warn(of: content.reader.remarks) }
      Self.warnOfUnknownDomains(in: content, console)
      var sink = try MobileSyncSink(
        path: directory, device: MobileSyncDevice(of: content.stored.snapshot),
        keys: secret.map { MobileSyncKeys(for: $0) })
      try content.requireRoom(
        in: directory, isCompressed: false,
        where: { MobileSyncDomains.domain(of: $0.components) != nil }, console)
      let status = try content.write(
        toDirectory: directory, by: &sink, size: { $0.size },
        expected: (member: "bundle_entries", note: "a backup contains no bundles of apps"),
        list: list, console, output)
      return ExitStatus.together([made?.status ?? .done, status])
    }

    /// Warns about a directory from which no device restores: programs that read backups find it,
    /// and a user who wants the backup for a device learns it in time.
    private static func warnOfUnknownDomains(in content: ExportedContent, _ console: Console) {
      let containers = content.stored.snapshot.device.containers.map(\.path)
        .filter { $0.isWithin(content.top) || content.top.isWithin($0) }
      let unknown = containers.filter { MobileSyncDomains.isUnknown($0) }
      guard let first = unknown.first else { return }
      let others = unknown.count > 1 ? " (and \(unknown.count - 1) others)" : ""
      let contents =
        unknown.count == containers.count ? "; the backup has no data of an app or of iOS" : ""
      console.warning(
        "iOS has no domain '\(first.lastComponent ?? "")'\(others): a device does not restore "
          + "'\(first)' from the backup\(contents)")
      console.hint("'sandboxctl export tar' writes an archive of any directory")
    }
  }
}

extension MobileSyncDevice {
  /// The description of the snapshot's device, as far as the snapshot has it.
  fileprivate init(of snapshot: Snapshot) {
    self.init()
    let device = snapshot.device
    for (prefix, isName) in [("udid:", false), ("name:", true)]
    where device.identity.hasPrefix(prefix) {
      let value = String(device.identity.dropFirst(prefix.count))
      if isName { name = value } else { identifier = value }
    }
    identifier = identifier ?? Self.identifier(for: device.identity)
    osVersion = device.osVersion
    madeAt = snapshot.time
    apps = snapshot.apps.map { App(identifier: ByteString($0.identifier), build: $0.build) }
  }
}

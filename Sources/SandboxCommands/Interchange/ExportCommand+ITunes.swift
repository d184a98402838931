internal import ArchiveStore
internal import ArgumentParser
internal import Interchange
internal import SnapshotQueries
internal import SystemIO

extension ExportCommand {
  /// `sandboxctl export itunes`: writes a backup as iTunes and the Finder do.
  struct ITunes: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "itunes",
        abstract: "Write a snapshot as a backup of iTunes, plain or encrypted",
        usage: "sandboxctl export itunes [<snap[:path]>] <dir> [--password-file <file>] "
          + "[<options>]",
        discussion: """
          Writes a backup in the form of iOS 10 and later into a new directory, encrypted if a \
          password is given, as iTunes and the Finder do. Otherwise whoever can read the directory \
          can read all data. Bundles and other things that such a backup does not contain are \
          named, and the exit status is 3. SNAP is 'latest' unless it is given. The containers of \
          apps and groups keep their domains, also if PATH names a part of them.

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
    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var progress: ReadingOptions
    @OptionGroup var list: ListOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
      guard (1...2).contains(words.count) else {
        throw ValidationError("Give a directory, or a snapshot and a directory.")
      }
    }

    func run(_ console: Console) throws -> ExitStatus {
      let directory = words.last ?? ""
      try repository.choice().requireApart(
        from: directory, hint: "name a directory outside of the repository")
      let secret = try password.read(of: directory, isNew: true, console)
      let query = try progress.open(repository, console, isQuiet: output.quiet)
      let content = try ExportedContent(
        of: words.count > 1 ? words[0] : "latest", allowUnsigned: allowUnsigned, in: query)
      defer { console.warn(of: content.reader.remarks) }
      var sink = try MobileSyncSink(
        path: directory, device: MobileSyncDevice(of: content.stored.snapshot),
        keys: secret.map { MobileSyncKeys(for: $0) })
      let written = try content.write(
        to: &sink, keepsPaths: true, isQuiet: output.quiet, console)
      try sink.finish()
      let (skipped, size) = (sink.skipped, sink.size)
      console.show(skipped, "not exported: ", all: list.all)
      try written.show(
        as: directory, without: skipped, of: content.stored, size: size, console, output)
      return written.status(skipped)
    }
  }
}

extension MobileSyncDevice {
  /// The description of the device that a snapshot is of, as far as the snapshot has it.
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

internal import ArchiveStore
internal import ArgumentParser
internal import Interchange
internal import SandboxModel
internal import SnapshotQueries
internal import SystemIO

/// The app to export, and where to.
struct AppExportOptions: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "The snapshot (default: latest), and the file or directory.", valueName: "snap target"))
  var words: [ByteString] = []

  @Option(help: .app("The app"))
  var app: ByteString

  @Flag(help: "Write the data even if no trusted signer signed the snapshot.")
  var allowUnsigned = false

  func validate() throws {
    guard (1...2).contains(words.count) else {
      throw ValidationError("Give a target, or a snapshot and a target.")
    }
    try words.requireTarget("target")
    if words.count > 1, words[0].bytes.contains(UInt8(ascii: ":")) {
      throw ValidationError("Give a snapshot without a path: '--app' names the data.")
    }
  }

  /// The snapshot.
  var what: ByteString { words.count > 1 ? words[0] : "latest" }
  /// The file or directory to write.
  var target: ByteString { words.last ?? "" }

  /// Opens a part of the app's data, and returns it with the app.
  ///
  /// - Parameter part: The path below the app, for example `data`; empty for all of it.
  func open(
    _ part: ByteString, _ query: SnapshotQuery
  ) throws -> (content: ExportedContent, app: AppIdentity) {
    var identity: AppIdentity?
    let content = try ExportedContent(
      of: what, having: app, allowUnsigned: allowUnsigned, in: query
    ) { _, snapshot in
      let record = try snapshot.app(app)
      let name = ByteString(record.identifier)
      identity = AppIdentity(identifier: name, version: record.version, build: record.build)
      return ByteString(joining: ["apps", LogicalName(name).component]).appending(part)
    }
    return (content, identity ?? AppIdentity(identifier: app))
  }
}

extension ExportCommand {
  /// `sandboxctl export xcappdata`: writes the data of an app for Xcode.
  struct XcodeData: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "xcappdata",
        abstract: "Write an app's data for Xcode (.xcappdata)",
        usage: "sandboxctl export xcappdata [<snap>] <dir> --app <app> [<options>]",
        discussion: """
          Writes the data container of an app into a new directory, NAME.xcappdata, which Xcode's \
          'Replace Container' puts into a device. The files belong to the user. Anything that such \
          a directory cannot contain is reported, and the exit status is 3. SNAP defaults to \
          'latest'.

          \(Examples.text([
            "sandboxctl export xcappdata notes.xcappdata --app notebook"
          ]))
          """)
    }

    @OptionGroup var export: AppExportOptions
    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var progress: ReadingOptions
    @OptionGroup var list: ListOptions
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      let directory = export.target
      try repository.choice().requireApart(
        from: directory, hint: "name a directory outside of the repository")
      let query = try progress.open(repository, console, isQuiet: output.quiet)
      let (content, app) = try export.open("data", query)
      defer { console.warn(of: content.reader.remarks) }
      var sink = try XcodeDataSink(path: directory, app: app)
      try content.requireRoom(in: directory, isCompressed: false, console)
      return try content.write(
        toDirectory: directory, by: &sink, size: { $0.size }, list: list, console, output)
    }
  }

  /// `sandboxctl export ipa`: writes an app with its data as a package.
  struct Package: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "ipa",
        abstract: "Write an app with its data as a package (.ipa)",
        usage: "sandboxctl export ipa [<snap>] <file> --app <app> [<options>]",
        discussion: """
          Writes a zip archive with the app's bundle in Payload and its data in Container. Zip has \
          no attributes or hard links, and times only in whole seconds; attributes are reported. \
          Groups and the containers of extensions are not written; the latter are reported, and \
          the exit status is 3. SNAP defaults to 'latest'.

          \(Examples.text([
            "sandboxctl export ipa darkroom.ipa --app darkroom"
          ]))
          """)
    }

    @OptionGroup var export: AppExportOptions
    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var progress: ReadingOptions
    @OptionGroup var list: ListOptions
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      try ArchiveExportOptions.requireName(export.target, of: .ipa)
      let query = try progress.open(repository, console, isQuiet: output.quiet)
      try repository.choice().requireApart(
        from: export.target, hint: "name a file outside of the repository")
      let (content, app) = try export.open("", query)
      defer { console.warn(of: content.reader.remarks) }
      let file = try OutputFile(path: export.target)
      try content.requireRoom(in: export.target.dirname, isCompressed: true, console)
      var sink = try PackageDataSink(to: file.write, app: app)
      let written = try content.write(
        to: &sink, keepsPaths: true, isQuiet: output.quiet, console)
      try sink.finish()
      try file.commit()
      let skipped = sink.skipped
      console.show(skipped, "not exported: ", all: list.all)
      try written.show(
        as: export.target, without: skipped, of: content.stored, size: file.size, console, output)
      return written.status(skipped)
    }
  }
}

internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Interchange
internal import SandboxModel
internal import SystemIO

extension ImportCommand {
  /// `sandboxctl import xcappdata`: imports the data of an app that Xcode downloaded.
  struct XcodeData: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "xcappdata",
        abstract: "Import an app's data of Xcode (.xcappdata)",
        usage: "sandboxctl import xcappdata <dir> [<options>]",
        discussion: """
          Imports the directory that Xcode's 'Download Container' makes: AppData becomes \
          apps/ID/data. AppDataInfo.plist, or the container's own metadata, names the app. Links \
          are stored and not followed. An entry that cannot be read is named, and the exit status \
          is 3.

          \(Examples.text([
            "sandboxctl export xcappdata notes.xcappdata --app notebook",
            "sandboxctl import xcappdata notes.xcappdata --repo repo",
          ]))
          """)
    }

    @Argument(
      help: ArgumentHelp("The directory, which contains AppData.", valueName: "dir"),
      completion: .directory)
    var directory: ByteString

    @OptionGroup var snapshot: ImportedSnapshotOptions
    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var list: ListOptions
    @OptionGroup var progress: ProgressOptions
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      let opened = try repository.open(console).repository
      let counters = ProgressCounters()
      let (report, app) = try progress.run(counters, output) { isStopping in
        var source = try XcodeDataSource(path: directory)
        let request = snapshot.request(
          ImportRequest.Placement(of: source.app, in: source.path), to: opened,
          counters: counters, isStopping: isStopping)
        let report = try ImportOperation(to: opened, request).run(&source)
        return (report, source.app)
      }
      return try report.show(
        at: "", of: "'\(app.identifier)'", format: "app data of Xcode", with: app.members,
        in: opened, all: list.all, console, output)
    }
  }

  /// `sandboxctl import ipa`: imports an app's package with its data.
  struct Package: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "ipa",
        abstract: "Import an app's package, with its data if it has any (.ipa)",
        usage: "sandboxctl import ipa <file> [<options>]",
        discussion: """
          Imports an .ipa or .imazingapp: Payload becomes apps/ID/bundle, Container apps/ID/data, \
          and Container/AppGroups/GROUP groups/GROUP. The app's Info.plist names the app. What \
          cannot be imported is named, and the exit status is 3.

          \(Examples.text([
            "sandboxctl export ipa darkroom.ipa --app darkroom",
            "sandboxctl import ipa darkroom.ipa --repo repo",
          ]))
          """)
    }

    @Argument(help: ArgumentHelp("The package.", valueName: "file"), completion: .file())
    var file: ByteString

    @OptionGroup var snapshot: ImportedSnapshotOptions
    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var list: ListOptions
    @OptionGroup var progress: ProgressOptions
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      let opened = try repository.open(console).repository
      let archive = try ArchiveFile(path: file)
      let counters = ProgressCounters()
      let (report, app) = try progress.run(counters, output) { isStopping in
        archive.isStopping = isStopping
        var source = try PackageDataSource(archive)
        let request = snapshot.request(
          ImportRequest.Placement(of: source.app, in: file.absolute ?? file), to: opened,
          counters: counters, isStopping: isStopping)
        let report = try ImportOperation(to: opened, request).run(&source)
        return (report, source.app)
      }
      return try report.show(
        at: "", of: "'\(app.identifier)'", format: "app package", with: app.members, in: opened,
        all: list.all, console, output)
    }
  }
}

extension ImportRequest.Placement {
  /// The placement of the data of an app, whose paths are logical paths. It does not name its device:
  /// all of one app are of one source.
  fileprivate init(of app: AppIdentity, in location: ByteString) {
    self.init(
      prefix: "",
      device: DeviceRecord(
        identity: "import:\(app.identifier)", platform: "iOS",
        layout: Layout.coreSimulator.rawValue, root: location),
      classes: ClassRun.ofLogicalPaths)
  }
}

extension AppIdentity {
  fileprivate var members: [JSON.Member] {
    [JSON.Member("app", .string(identifier.description))]
  }
}

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
          are stored and not followed. An entry that cannot be read is reported, and the exit \
          status is 3.

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

    @OptionGroup var options: LogicalImport

    func run(_ console: Console) throws -> ExitStatus {
      try options.run(console) { _ in
        try XcodeDataSource(path: directory)
      } placement: { source in
        ImportRequest.Placement(of: source.app, in: source.path)
      } origin: { source in
        source.app.origin(format: "app data of Xcode")
      }
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
          and Container/AppGroups/GROUP groups/GROUP. The app's Info.plist names the app. Anything \
          that cannot be imported is reported, and the exit status is 3.

          \(Examples.text([
            "sandboxctl export ipa darkroom.ipa --app darkroom",
            "sandboxctl import ipa darkroom.ipa --repo repo",
          ]))
          """)
    }

    @Argument(help: ArgumentHelp("The package.", valueName: "file"), completion: .file())
    var file: ByteString

    @OptionGroup var options: LogicalImport

    func run(_ console: Console) throws -> ExitStatus {
      try options.run(console) { isStopping in
        let archive = try ArchiveFile(path: file)
        archive.isStopping = isStopping
        return try PackageDataSource(archive)
      } placement: { source in
        ImportRequest.Placement(of: source.app, in: file.absolute ?? file)
      } origin: { source in
        source.app.origin(format: "app package")
      }
    }
  }
}

extension ImportRequest.Placement {
  /// The placement of the data of an app, whose paths are logical paths. The data does not name its
  /// device: all data of one app has the same source.
  fileprivate init(of app: AppIdentity, in location: ByteString) {
    self.init(
      ofLogicalPathsFrom: "import:\(app.identifier)", platform: "iOS", layout: .coreSimulator,
      in: location)
  }
}

extension AppIdentity {
  fileprivate func origin(format: String) -> LogicalImport.Origin {
    LogicalImport.Origin(
      name: "'\(identifier)'", format: format,
      members: [JSON.Member("app", .string(identifier.description))])
  }
}

internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Interchange
internal import SandboxModel
internal import SystemIO

extension ImportCommand {
  /// `sandboxctl import android`: imports a backup of `adb backup`.
  struct Android: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "android",
        abstract: "Import an Android backup (.ab)",
        usage: "sandboxctl import android <file> [--password-file <file>] [<options>]",
        discussion: """
          Imports a file of 'adb backup', plain or encrypted, with the data of each package under \
          apps/PACKAGE/data, as a backup of the layout android has it. Manifests and packages \
          (.apk) are under apps/PACKAGE/bundle. From a damaged file, all complete entries before \
          the damage are imported, with exit status 3; if its compressed data is damaged, any of \
          them may be wrong, which is reported and recorded. '-' reads standard input.

          \(Examples.text([
            "sandboxctl export android latest:notebook/Documents/Notes notes.ab",
            "sandboxctl import android notes.ab --repo repo",
          ]))
          """)
    }

    @Argument(
      help: ArgumentHelp("The backup, or '-' for standard input.", valueName: "file"),
      completion: .file())
    var file: ByteString

    @OptionGroup var password: BackupPasswordOptions
    @OptionGroup var options: LogicalImport

    private var isStandardInput: Bool { file == "-" }

    func validate() throws {
      if password.password, isStandardInput {
        throw ValidationError(
          "'--password' cannot be used with a backup from standard input; use '--password-file'.")
      }
    }

    func run(_ console: Console) throws -> ExitStatus {
      let opened = try options.repository.open(console).repository
      let location = isStandardInput ? "/dev/stdin" : file.absolute ?? file
      let secret = try password.read(of: location, console)
      let counters = ProgressCounters()
      let (report, header) = try BackupPasswordOptions.namingOptions {
        try options.progress.run(counters, options.output) { isStopping in
          var request = options.snapshot.request(
            ImportRequest.Placement(androidBackupAt: location), to: opened, counters: counters,
            isStopping: isStopping)
          var source = try openSource(secret, &request)
          let report = try ImportOperation(to: opened, request).run(&source)
          return (report, source.header)
        }
      }
      console.warnOfUnused(secret, isEncrypted: header.encryption != nil, of: location)
      let packages = report.snapshot.snapshot.apps.count
      let origin = LogicalImport.Origin(
        name: Sizes.count(packages, "Android package"), format: header.summary,
        members: [JSON.Member("packages", .integer(Int64(packages)))])
      return try options.show(report, of: origin, in: opened, console)
    }

    /// Opens the backup. The snapshot has the time of its file unless another one is given.
    private func openSource(
      _ secret: BackupPassword?, _ request: inout ImportRequest
    ) throws -> AndroidBackupReader {
      if isStandardInput {
        return try AndroidBackupReader(
          Descriptor.standardInput(), openedWith: secret, isStopping: request.isStopping)
      }
      let backup = try Descriptor.open(path: file, allowsFIFO: true)
      let status = try backup.status()
      if case .ofSource = request.time, status.kind == .file {
        request.time = .at(status.modified)
      }
      return try AndroidBackupReader(backup, openedWith: secret, isStopping: request.isStopping)
    }
  }
}

extension ImportRequest.Placement {
  /// The placement of an Android backup, whose paths are logical paths. A backup does not name its
  /// device: all of them have the same source.
  fileprivate init(androidBackupAt location: ByteString) {
    self.init(
      ofLogicalPathsFrom: "import:android", platform: "Android", layout: .android, in: location)
  }
}

extension AndroidBackupHeader {
  /// The format for people: "Android backup version 5, compressed, encrypted".
  fileprivate var summary: String {
    "Android backup version \(version)" + (isCompressed ? ", compressed" : "")
      + (encryption != nil ? ", encrypted" : "")
  }
}

internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Interchange
internal import SandboxModel
internal import SystemIO

extension ImportCommand {
  /// `sandboxctl import itunes`: imports a backup of iTunes or the Finder.
  struct ITunes: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "itunes",
        abstract: "Import a backup of iTunes, the Finder or idevicebackup2",
        usage: "sandboxctl import itunes <dir> [--to-device <root>] [<options>]",
        discussion: """
          Imports the directory of one backup of iOS 4 or later, plain or encrypted. The domains \
          of apps become apps/ID/data, those of groups groups/ID, all others folders/DOMAIN. The \
          snapshot has the time of the backup. Files that are unchanged since the last import of \
          the device are not read again. A file that is missing or damaged in the backup is \
          reported, and the exit status is 3. --to-device then restores the snapshot into a \
          device, as 'sandboxctl restore' does; domains without a location there are not restored.

          \(Examples.text([
            "sandboxctl export itunes latest:notebook/Documents/Attachments phone",
            "sandboxctl import itunes phone --repo repo",
          ]))
          """)
    }

    @Argument(
      help: ArgumentHelp(
        "The directory of one backup, which contains Manifest.plist.", valueName: "dir"),
      completion: .directory)
    var directory: ByteString

    @Flag(help: "Read all files, even those that are unchanged since the last import.")
    var reread = false

    @OptionGroup var password: BackupPasswordOptions
    @OptionGroup var snapshot: ImportedSnapshotOptions
    @OptionGroup var target: ImportedDeviceOptions
    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var list: ListOptions
    @OptionGroup var progress: ProgressOptions
    @OptionGroup var output: OutputOptions

    static var needs: [OptionNeed] { ImportedDeviceOptions.needs }

    func run(_ console: Console) throws -> ExitStatus {
      let root = try target.target(.coreSimulator)
      let place = try repository.open(console)
      let (report, status) = try importBackup(to: place.repository, console)
      guard let root else { return status }
      let restored = try target.restore(
        report.snapshot, to: root, in: place, list: list, progress: progress, output: output,
        console)
      return ExitStatus.together([status, restored])
    }

    /// Imports the backup and prints the report.
    private func importBackup(
      to opened: Repository, _ console: Console
    ) throws -> (report: ImportReport, status: ExitStatus) {
      let secret = try password.read(of: directory, console)
      let counters = ProgressCounters()
      let (report, device, isEncrypted) = try BackupPasswordOptions.namingOptions {
        try progress.run(counters, output) { isStopping in
          let backup = try MobileSyncBackup(path: directory, password: secret)
          let (device, isEncrypted) = (backup.device, backup.isEncrypted)
          var request = snapshot.request(
            ImportRequest.Placement(device, in: backup.path), to: opened, counters: counters,
            isStopping: isStopping)
          request.contents = opened.hostDirectory.map {
            ImportRequest.RecordedContents(in: $0, isReread: reread)
          }
          var source = try MobileSyncSource(backup)
          return (try ImportOperation(to: opened, request).run(&source), device, isEncrypted)
        }
      }
      console.warnOfUnused(secret, isEncrypted: isEncrypted, of: directory)
      let status = try report.show(
        at: "", of: device.summary,
        format: "iTunes backup, \(isEncrypted ? "encrypted" : "not encrypted")",
        with: [
          JSON.Member("unchanged", .integer(Int64(report.unchanged))),
          JSON.Member("device", device.json),
        ], in: opened, all: list.all, console, output)
      return (report, status)
    }
  }
}

extension ImportRequest.Placement {
  /// The placement of a backup of iTunes or the Finder, whose paths are logical paths.
  ///
  /// - Parameter path: the absolute path of the backup. Without an identifier of the device, its
  ///   name is the identity of successive backups.
  fileprivate init(_ device: MobileSyncDevice, in path: ByteString) {
    let udid = device.identifier.map { ByteString($0) } ?? path.lastComponent ?? "unknown"
    self.init(
      ofLogicalPathsFrom: Device.Identity.udid(udid).description, platform: "iOS",
      layout: .coreSimulator, in: path, osVersion: device.osVersion)
  }
}

extension MobileSyncDevice {
  /// The device for people: `'Ada' (iPhone9,3, iOS 15.8)`.
  fileprivate var summary: String {
    let known = name ?? identifier
    let details = [
      productType.map { ByteString($0).description },
      osVersion.map { "iOS \(ByteString($0))" },
    ].compactMap(\.self)
    return (known.map { "'\(ByteString($0))'" } ?? "a device")
      + (details.isEmpty ? "" : " (\(details.joined(separator: ", ")))")
  }

  fileprivate var json: JSON {
    let members: [(String, String?)] = [
      ("name", name), ("identifier", identifier), ("product_type", productType),
      ("os_version", osVersion),
    ]
    return .object(members.compactMap { key, text in text.map { JSON.Member(key, .string($0)) } })
  }
}

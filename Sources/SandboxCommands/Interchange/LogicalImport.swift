internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Interchange
internal import SandboxModel
internal import SystemIO

/// The import of a source whose paths are logical paths: the options of its commands, and the work.
struct LogicalImport: ParsableArguments {
  @OptionGroup var snapshot: ImportedSnapshotOptions
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var list: ListOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  /// A source in the report.
  struct Origin {
    /// The device, app or files, for people.
    var name: String
    /// The format, for people.
    var format: String
    /// The further members of the JSON object.
    var members: [JSON.Member]
  }

  /// Imports a source and prints the report.
  ///
  /// - Parameters:
  ///   - open: Opens the source; receives the function that returns whether to stop.
  ///   - placement: Returns the placement of the opened source.
  ///   - origin: Describes the source after it was read.
  func run<Source: EntrySource & ~Copyable>(
    _ console: Console, open: (@escaping @Sendable () -> Bool) throws -> Source,
    placement: (borrowing Source) -> ImportRequest.Placement,
    origin: (borrowing Source) -> Origin
  ) throws -> ExitStatus {
    let opened = try repository.open(console).repository
    let counters = ProgressCounters()
    let (report, origin) = try progress.run(counters, output) { isStopping in
      var source = try open(isStopping)
      let request = snapshot.request(
        placement(source), to: opened, counters: counters, isStopping: isStopping)
      let report = try ImportOperation(to: opened, request).run(&source)
      return (report, origin(source))
    }
    return try show(report, of: origin, in: opened, console)
  }

  /// Prints the report and returns the exit status.
  func show(
    _ report: ImportReport, of origin: Origin, in repository: Repository, _ console: Console
  ) throws -> ExitStatus {
    try report.show(
      at: "", of: origin.name, format: origin.format, with: origin.members, in: repository,
      all: list.all, console, output)
  }
}

extension ImportRequest.Placement {
  /// The placement of a source whose paths are logical paths: all of it is user data.
  ///
  /// - Parameters:
  ///   - identity: The identity of the source's device, which successive backups have in common.
  ///   - location: The absolute path of the source.
  init(
    ofLogicalPathsFrom identity: String, platform: String, layout: Layout, in location: ByteString,
    osVersion: String? = nil
  ) {
    self.init(
      prefix: "",
      device: DeviceRecord(
        identity: identity, platform: platform, layout: layout.rawValue, root: location,
        osVersion: osVersion),
      classes: ["apps", "folders", "groups"].map { ClassRun(path: $0, name: "user-data") })
  }
}

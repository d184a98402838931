internal import ArchiveStore
internal import ArgumentParser
internal import DeviceDiscovery
internal import Restore
internal import SandboxModel
internal import SystemIO

/// The device into which an import restores its snapshot.
struct ImportedDeviceOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Restore the imported data into the device in this directory.", valueName: "[layout:]root"),
    completion: .directory)
  var toDevice: ByteString?

  @Option(
    name: .customLong("app"),
    help: .app("Restore only this app", addition: "may be repeated"))
  var apps: [String] = []

  @OptionGroup var merging: RestoreCommand.MergeOptions

  @Flag(help: "Include the apps' groups that other apps share.")
  var withGroups = false

  @Flag(help: "Restore even if an app is running.")
  var force = false

  @Flag(help: "Do not make a snapshot of the device's current state first.")
  var noSnapshot = false

  @OptionGroup var policy: PolicyChoice

  /// Returns the root of the device; nil if nothing is restored. Checks for the device before the
  /// import, which can take hours.
  ///
  /// - Parameter layout: the layout of the imported snapshot.
  /// - Throws: `UsageError` for another layout; `ModelError` if the directory is not a device.
  func target(_ layout: Layout) throws -> ByteString? {
    guard let toDevice else { return nil }
    _ = try merging.mode()
    guard case .device(let root, layout) = try MigrationEndpoint(target: toDevice) else {
      throw UsageError(
        .unknownLayout, "'\(toDevice)' is not a device of the layout \(layout.rawValue)",
        hint: "import without '--to-device', then 'sandboxctl migrate --from latest --to "
          + "[LAYOUT:]ROOT'")
    }
    _ = try Device.find(root: root, layout: layout)
    return root
  }

  /// The needs of a command with these options.
  static var needs: [OptionNeed] {
    OptionNeed.of(
      "app", "overwrite", "delete", "with-groups", "force", "no-snapshot", "policy",
      other: "to-device")
  }

  /// Restores a snapshot into the device and prints the report.
  func restore(
    _ stored: StoredSnapshot, to root: ByteString,
    in opened: OpenRepository, list: ListOptions,
    progress: ProgressOptions, output: OutputOptions, _ console: Console
  ) throws -> ExitStatus {
    let reader = try opened.repository.beginCarefulReading()
    defer { console.warn(of: reader.remarks) }
    let run = RestoreCommand.DeviceRun(
      root: root, isPreview: false, isForced: force, policy: policy, listsAll: list.all,
      progress: progress, output: output)
    return try run.restore(
      stored, from: reader, in: opened.repository, protecting: try opened.protectedDirectories(),
      adapt: { request in
        request.apps = try stored.snapshot.identifiers(of: apps)
        request.withGroups = withGroups
        request.overwrite = try merging.mode() ?? .ifChanged
        request.deletes = merging.delete
        request.savesFirst = !noSnapshot
      }, console)
  }
}

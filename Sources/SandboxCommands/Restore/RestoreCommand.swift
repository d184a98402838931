internal import ArchiveStore
internal import ArgumentParser
internal import Backup
internal import Codecs
internal import DeviceDiscovery
internal import DeviceTransaction
internal import PolicyEngine
internal import Restore
internal import SandboxModel
internal import SystemIO

/// `sandboxctl restore SNAP[:PATH] | REAL-PATH (--to DIR | --to-device ROOT | --in-place)`.
struct RestoreCommand: SandboxCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "restore",
      abstract: "Restore a snapshot or part of it",
      usage: """
        sandboxctl restore <snap[:path]> --to <dir> [<options>]
        sandboxctl restore <snap[:path]> --to-device <root> [<options>]
        sandboxctl restore (<snap[:path]> | <real-path>) --in-place [<options>]
        """,
      discussion: """
        Restores into a directory (--to), into the containers of a device (--to-device), or into \
        the device that was backed up (--in-place). SNAP is an id, 'latest', 'latest~2' or a time; \
        PATH is a logical path, <app>/<path in its data>, or an absolute path of the device. \
        REAL-PATH begins with a slash or a dot and is restored from the latest snapshot that has \
        it.

        A directory that is not empty is merged with --overwrite; nothing is deleted without \
        --delete. Before a restore into a device its containers are saved in a snapshot, and \
        replaced files move to its trash. See sandboxctl-restore(1).

        \(Examples.text([
          "sandboxctl restore latest --to back --repo repo",
          "sandboxctl restore latest --app notebook --in-place --repo repo --dry-run",
          "sandboxctl restore latest:notebook/Documents --in-place --repo repo",
          "sandboxctl restore latest --to-device device --repo repo",
        ]))
        """)
  }

  @Argument(
    help: ArgumentHelp(
      "The snapshot and a path in it, or a path of the device.", valueName: "snap[:path]"))
  var what: ByteString

  @Option(
    help: ArgumentHelp(
      "The directory to restore to, or the file if PATH is a file.", valueName: "dir"),
    completion: .directory)
  var to: ByteString?

  @OptionGroup var part: PartOptions
  @OptionGroup var merging: MergeOptions
  @OptionGroup var place: TargetOptions
  @OptionGroup var policy: PolicyChoice

  @Flag(name: .shortAndLong, help: "Show what would be done, without doing it.")
  var dryRun = false

  @OptionGroup var list: ListOptions
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var progress: ProgressOptions
  @OptionGroup var output: OutputOptions

  func run(_ console: Console) throws -> ExitStatus {
    try requireOnePlace()
    let what = try Source(self.what)
    if merging.delete, !part.classes.isEmpty {
      throw UsageError(
        .optionsConflict,
        "'--delete' cannot be used with '--class': files that the snapshot lacks have no class")
    }
    if to == nil { return try restoreIntoDevice(what, console) }
    return try restoreIntoDirectory(what, console)
  }

  private func requireOnePlace() throws {
    let places = [to != nil, place.toDevice != nil, place.inPlace].count { $0 }
    if places == 1 { return try place.requireFit(isDirectory: to != nil) }
    throw UsageError(
      places == 0 ? .targetRequired : .optionsConflict,
      places == 0 ? "no restore target given" : "several restore targets given",
      hint:
        "use '--to DIR' for a plain directory, '--to-device ROOT' for another device, or "
        + "'--in-place' for the device that was backed up")
  }

  // MARK: - Into a directory

  private func restoreIntoDirectory(_ what: Source, _ console: Console) throws -> ExitStatus {
    let mode = try merging.mode()
    if merging.delete, mode == nil {
      throw UsageError(
        .optionRequired, "'--delete' requires '--overwrite'",
        hint: "add '--overwrite if-changed', or another mode")
    }
    let (repository, storage) = try repository.open()
    let reader = try repository.beginCarefulReading()
    defer { console.warn(of: reader.remarks) }
    let (stored, path) = try what.find(in: repository, reader, apps: part.apps, console)
    var request = RestoreRequest(
      path: try part.path(path, in: stored.snapshot), target: to ?? "",
      overwrite: mode, deletes: merging.delete, protected: [try storage.identity()])
    request.classes = try part.classNames()
    request.deletesExcluded = place.deleteExcluded
    let plan = try RestorePlan.make(stored, request, from: reader)
    let needs = plan.volumeNeeds(from: reader)
    console.warn(ofPerhapsTooMuch: needs)
    if dryRun {
      try output.json
        ? console.result(plan.json(needs)) : plan.tell(console, needs, listsAll: list.all)
      return Self.status(damaged: plan.damaged, failed: plan.blocked, needs)
    }
    let counters = ProgressCounters()
    let report = try progress.run(counters, output) { isStopping in
      try RestoreOperation(plan, from: reader, counters: counters, isStopping: isStopping).run()
    }
    if output.json {
      try console.result(report.json(plan))
    } else {
      try report.tell(plan, console, quiet: output.quiet)
    }
    return Self.status(damaged: report.damaged, failed: report.failed)
  }

  /// Returns the exit status for a report or a plan. A plan for which there is no room would be
  /// refused.
  static func status(
    damaged: [PathRemark], failed: [PathRemark], _ needs: [VolumeNeed] = []
  ) -> ExitStatus {
    if needs.contains(where: { $0.verdict == .lacksRoom }) { return .failed }
    if !damaged.isEmpty { return .damaged }
    return failed.isEmpty ? .done : .doneInPart
  }
}

extension RestoreCommand {
  /// The snapshot, the repository and the path of a restore into a device.
  private struct DeviceInput {
    let stored: StoredSnapshot
    /// The logical path to restore.
    let path: ByteString
    let repository: Repository
    let reader: RepositoryReader
    /// The repository's directory, which must not be changed.
    let protected: Set<FileIdentity>
    /// The snapshot's plain directory, if it no longer exists.
    let missing: MissingRoot?
  }
}

extension RestoreCommand {
  /// Restores into the containers of a device.
  func restoreIntoDevice(_ what: Source, _ console: Console) throws -> ExitStatus {
    _ = try merging.mode()
    let (repository, storage) = try repository.open()
    let reader = try repository.beginCarefulReading()
    defer { console.warn(of: reader.remarks) }
    let (stored, path) = try what.find(in: repository, reader, apps: part.apps, console)
    let protected: Set = [try storage.identity()]
    let missing = place.inPlace ? try MissingRoot.find(of: stored, protecting: protected) : nil
    let input = DeviceInput(
      stored: stored, path: path, repository: repository, reader: reader, protected: protected,
      missing: missing)
    guard let missing, !dryRun else { return try restore(input, console) }
    try missing.make()
    do {
      return try restore(input, console)
    } catch {
      missing.removeIfEmpty()
      throw error
    }
  }

  private func restore(_ input: DeviceInput, _ console: Console) throws -> ExitStatus {
    let snapshot = input.stored.snapshot
    let found = try device(for: input)
    let policy = try policy.compile(
      for: found.layout, version: found.osVersion?.utf8.flatMap { OSVersion($0) },
      orElse: snapshot.policy.name)
    let (target, recovery) = try Recovery.beforeChange(
      of: found, policy: policy, isForced: place.force, isPreview: dryRun,
      again: { try device(for: input) }, tell: console.tell)
    let request = try request(input, on: target, policy)
    let plan = try DeviceRestorePlan.make(input.stored, request, from: input.reader)
    let needs = plan.volumeNeeds(from: input.reader)
    console.warn(ofPerhapsTooMuch: needs)
    if dryRun {
      try output.json
        ? console.result(plan.json(needs))
        : DeviceText(plan, listsAll: list.all).tell(console, needs)
      return Self.status(
        damaged: plan.damaged, failed: plan.remarks(\.blocked), needs)
    }
    try recovery.requireNoneBlocks(plan.subjects)
    console.tellPending(recovery)
    return try carryOut(plan, from: input, console)
  }

  private func request(
    _ input: DeviceInput, on device: Device, _ policy: CompiledPolicy
  ) throws -> DeviceRestoreRequest {
    var request = DeviceRestoreRequest(device, isInPlace: place.inPlace, policy: policy)
    request.path = input.path
    request.apps = try input.stored.snapshot.identifiers(of: part.apps)
    if !request.apps.isEmpty, !input.path.isEmpty {
      throw UsageError(
        .optionsConflict, "'--app' and a path cannot be used together",
        hint: "write a path in an app as 'SNAP:app/Documents'")
    }
    request.withGroups = place.withGroups
    request.classes = try part.classNames()
    request.overwrite = try merging.mode() ?? .ifChanged
    request.deletes = merging.delete
    request.deletesExcluded = place.deleteExcluded
    request.isForced = place.force
    // A directory that was just created has nothing to save.
    request.savesFirst = !place.noSnapshot && input.missing == nil
    request.protected = input.protected
    return request
  }

  private func carryOut(
    _ plan: DeviceRestorePlan, from input: DeviceInput, _ console: Console
  ) throws -> ExitStatus {
    let counters = ProgressCounters()
    let report = try progress.run(counters, output) { isStopping in
      let saving = BackupRequest(
        program: Version.text, cache: Host.cacheDirectory, isStopping: isStopping)
      return try DeviceRestoreOperation(
        plan, from: input.reader, saving: SafetySnapshotMaker(saving, in: input.repository),
        counters: counters, isStopping: isStopping
      ).run()
    }
    let failed = report.remarks(\.failed)
    let unset = (input.missing?.complete(from: input.reader) ?? []).filter { !failed.contains($0) }
    if output.json {
      try console.result(report.json(plan))
    } else {
      try DeviceText(plan, listsAll: list.all).tell(report, console, quiet: output.quiet)
    }
    for remark in unset { console.warning("not restored: \(RealPaths(plan).text(remark))") }
    return Self.status(damaged: report.damaged, failed: failed + unset)
  }

  // MARK: - The device

  private func device(for input: DeviceInput) throws -> Device {
    let snapshot = input.stored.snapshot
    if dryRun, let missing = input.missing { return missing.device }
    guard let layout = Layout(rawValue: snapshot.device.layout) else {
      throw OperationError(
        .failed, code: .unknownLayout,
        "cannot restore into a device: the snapshot's layout "
          + "'\(ByteString(snapshot.device.layout))' is unknown",
        hint: "'--to DIR' restores it into a plain directory")
    }
    if let root = place.toDevice {
      if layout == .folder {
        throw OperationError(
          .failed, code: .notADeviceSnapshot,
          "cannot restore into a device: the snapshot is of a plain directory",
          hint: "'--to DIR' restores it into a directory")
      }
      try makeRoot(root, layout)
      return try Device.find(root: root, layout: layout)
    }
    try makeRoot(snapshot.device.root, layout)
    let device = try Device.find(root: snapshot.device.root, layout: layout)
    let identity = snapshot.device.identity
    guard device.identity.description == identity || identity.hasPrefix("name:") else {
      throw OperationError(
        .failed, code: .deviceMismatch,
        "'\(snapshot.device.root)' is not the device of the snapshot: its identity is "
          + "\(device.identity), not \(ByteString(identity))",
        hint: "'--to-device \(ShellWord.text(snapshot.device.root))' restores into it anyway")
    }
    return device
  }

  /// Creates the directory of Flatpak or snap if it has not been used yet. The directory alone
  /// makes a device.
  private func makeRoot(_ root: ByteString, _ layout: Layout) throws {
    let isDirectory =
      layout == .flatpak && root.components.suffix(2) == [".var", "app"]
      || layout == .snap && root.lastComponent == "snap"
    guard isDirectory, !dryRun else { return }
    do throws(SystemError) {
      _ = try Directory.make(path: root)
    } catch { throw OperationError(error) }
  }
}

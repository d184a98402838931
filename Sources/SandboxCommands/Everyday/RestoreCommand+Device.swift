internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// The snapshot, the repository and the path of a restore into a device.
private struct DeviceRestoreInput {
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

extension RestoreCommand {
  /// Restores into the containers of a device.
  func restoreIntoDevice(_ what: RestoreSource, _ console: Console) throws -> ExitStatus {
    _ = try merging.mode()
    let (repository, storage) = try repository.open()
    let reader = try repository.beginCarefulReading()
    defer { console.warn(of: reader.remarks) }
    let (stored, path) = try what.find(in: repository, reader, apps: part.apps, console)
    let protected: Set = [try storage.identity()]
    let missing = place.inPlace ? try MissingRoot.find(of: stored, protecting: protected) : nil
    let input = DeviceRestoreInput(
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

  private func restore(_ input: DeviceRestoreInput, _ console: Console) throws -> ExitStatus {
    let snapshot = input.stored.snapshot
    var found = try device(for: input)
    let policy = try policy.compile(
      for: found.layout, version: found.osVersion?.utf8.flatMap { OSVersion($0) },
      orElse: snapshot.policy.name)
    var blocked: [BlockedRecovery] = []
    if dryRun {
      console.warn(ofInterruptedOn: found)
    } else {
      let report = try console.recover(Recovery(found, policy: policy, isForced: place.force))
      blocked = report.blocked
      if !report.done.isEmpty { found = try device(for: input) }
    }
    let request = try request(input, on: found.stating(groupsOf: policy), policy)
    let plan = try DeviceRestorePlan.make(input.stored, request, from: input.reader)
    let needs = plan.volumeNeeds(from: input.reader)
    console.warn(ofPerhapsTooMuch: needs)
    if dryRun {
      try output.json
        ? console.result(plan.json(needs))
        : DeviceRestoreText(plan, listsAll: list.all).tell(console, needs)
      return Self.status(
        damaged: plan.damaged, failed: plan.remarks(\.blocked), needs)
    }
    try console.pass(blocked) { $0.refusal(of: plan) }
    return try carryOut(plan, from: input, console)
  }

  private func request(
    _ input: DeviceRestoreInput, on device: Device, _ policy: CompiledPolicy
  ) throws -> DeviceRestoreRequest {
    var request = DeviceRestoreRequest(device, isInPlace: place.inPlace, policy: policy)
    request.path = input.path
    request.apps = try input.stored.snapshot.identifiers(of: part.apps)
    if !request.apps.isEmpty, !input.path.isEmpty {
      throw UsageError(
        "'--app' and a path cannot be used together",
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
    _ plan: DeviceRestorePlan, from input: DeviceRestoreInput, _ console: Console
  ) throws -> ExitStatus {
    let counters = ProgressCounters()
    let report = try progress.run(counters, output) { isStopping in
      let saving = BackupRequest(
        program: Version.text, cache: Host.cacheDirectory, isStopping: isStopping)
      return try DeviceRestoreOperation(
        plan, input.repository, from: input.reader, saving: saving, counters: counters,
        isStopping: isStopping
      ).run()
    }
    let failed = report.remarks(\.failed)
    let unset = (input.missing?.complete(from: input.reader) ?? []).filter { !failed.contains($0) }
    if output.json {
      try console.result(report.json(plan))
    } else {
      try DeviceRestoreText(plan, listsAll: list.all).tell(report, console, quiet: output.quiet)
    }
    for remark in unset { console.warning("not restored: \(RealPaths(plan).text(remark))") }
    return Self.status(damaged: report.damaged, failed: failed + unset)
  }

  // MARK: - The device

  private func device(for input: DeviceRestoreInput) throws -> Device {
    let snapshot = input.stored.snapshot
    if dryRun, let missing = input.missing { return missing.device }
    guard let layout = Layout(rawValue: snapshot.device.layout) else {
      throw LifecycleError(
        .failed,
        "cannot restore into a device: the snapshot's layout "
          + "'\(ByteString(snapshot.device.layout))' is unknown",
        hint: "'--to DIR' restores it into a plain directory")
    }
    if let root = place.toDevice {
      if layout == .folder {
        throw LifecycleError(
          .failed, "cannot restore into a device: the snapshot is of a plain directory",
          hint: "'--to DIR' restores it into a directory")
      }
      try makeRoot(root, layout)
      return try Device.find(root: root, layout: layout)
    }
    try makeRoot(snapshot.device.root, layout)
    let device = try Device.find(root: snapshot.device.root, layout: layout)
    let identity = snapshot.device.identity
    guard device.identity.description == identity || identity.hasPrefix("name:") else {
      throw LifecycleError(
        .failed,
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
    } catch { throw LifecycleError(error) }
  }
}

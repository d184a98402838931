internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

extension RestoreCommand {
  /// Restores into the containers of a device.
  func restoreIntoDevice(_ what: RestoreWhat, _ console: Console) throws -> ExitStatus {
    let mode = try merging.mode()
    let (repository, storage) = try repository.open()
    let reader = try repository.beginCarefulReading()
    defer { console.warn(of: reader.remarks) }
    let (stored, path) = try what.find(in: repository, reader, apps: part.apps, console)
    var found = try device(of: stored.snapshot)
    let policy = try policy.compile(
      for: found.layout, version: found.osVersion?.utf8.flatMap { OSVersion($0) },
      orElse: stored.snapshot.policy.name)
    var hindered: [HinderedRecovery] = []
    if dryRun {
      console.warn(ofInterruptedOn: found)
    } else {
      let report = try console.recover(Recovery(found, policy: policy, isForced: place.force))
      hindered = report.hindered
      if !report.done.isEmpty { found = try device(of: stored.snapshot) }
    }
    var request = DeviceRestoreRequest(
      found.stating(groupsOf: policy), isInPlace: place.inPlace, policy: policy)
    request.path = path
    request.apps = try stored.snapshot.identifiers(of: part.apps)
    if !request.apps.isEmpty, !path.isEmpty {
      throw UsageError(
        "'--app' and a path cannot be used together",
        hint: "a path in an app is written as 'SNAP:app/Documents'")
    }
    request.withGroups = place.withGroups
    request.classes = try part.classNames()
    request.overwrite = mode ?? .ifChanged
    request.deletes = merging.delete
    request.deletesExcluded = place.deleteExcluded
    request.isForced = place.force
    request.savesFirst = !place.noSnapshot
    request.protected = [try storage.identity()]
    let plan = try DeviceRestorePlan.make(stored, request, from: reader)
    let needs = plan.volumeNeeds(from: reader)
    console.warn(ofPerhapsTooMuch: needs)
    if dryRun {
      try output.json
        ? console.result(plan.json(needs))
        : DeviceRestoreText(plan, listsAll: list.all).tell(console, needs)
      return Self.status(
        damaged: plan.damaged, failed: plan.remarks(\.blocked), needs)
    }
    try console.pass(hindered) { $0.refusal(of: plan) }
    return try carryOut(plan, repository, reader, console)
  }

  private func carryOut(
    _ plan: DeviceRestorePlan, _ repository: Repository, _ reader: RepositoryReader,
    _ console: Console
  ) throws -> ExitStatus {
    let counters = ProgressCounters()
    let report = try progress.run(counters, output) { isStopping in
      let saving = BackupRequest(
        program: Version.text, cache: Host.cacheFolder, isStopping: isStopping)
      return try DeviceRestoreOperation(
        plan, repository, from: reader, saving: saving, counters: counters,
        isStopping: isStopping
      ).run()
    }
    if output.json {
      try console.result(report.json(plan))
    } else {
      try DeviceRestoreText(plan, listsAll: list.all).tell(report, console, quiet: output.quiet)
    }
    return Self.status(damaged: report.damaged, failed: report.remarks(\.failed))
  }

  // MARK: - The device

  private func device(of snapshot: Snapshot) throws -> Device {
    guard let layout = Layout(rawValue: snapshot.device.layout) else {
      throw LifecycleError(
        .failed,
        "the snapshot is of the layout '\(ByteString(snapshot.device.layout))', which is "
          + "not known", hint: "'--to DIR' restores it into a plain folder")
    }
    if let root = place.toDevice {
      if layout == .folder {
        throw LifecycleError(
          .failed, "the snapshot is of a plain folder, and goes into no device",
          hint: "'--to DIR' restores it into a folder")
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
        "'\(snapshot.device.root)' is not the device that the snapshot came from: it is "
          + "\(device.identity), and that was \(ByteString(identity))",
        hint: "'--to-device \(ShellWord.text(snapshot.device.root))' restores into it all the same")
    }
    return device
  }

  /// Where Flatpak or snap has not been used yet its folder is made: there is nothing else to a device
  /// of it.
  private func makeRoot(_ root: ByteString, _ layout: Layout) throws {
    let isFolder =
      layout == .flatpak && root.components.suffix(2) == [".var", "app"]
      || layout == .snap && root.lastComponent == "snap"
    guard isFolder, !dryRun else { return }
    do throws(SystemError) {
      _ = try Folder.make(path: root)
    } catch { throw LifecycleError(error) }
  }
}

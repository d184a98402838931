internal import ArchiveStore
internal import DeviceTransaction
internal import Restore
internal import SystemIO

/// Data restored from a snapshot. It is staged like that of a restore and put in place by the
/// operation's journal, so that all containers of the app change together.
extension AppExchange {
  /// A container with data to restore.
  struct StagedPart {
    let plan: RestorePlan
    let run: RestoreRun
    let trash: TrashDirectory?
  }

  /// Stages all parts.
  ///
  /// - Throws: `OperationError`, also if data of the snapshot is damaged or cannot be staged; the
  ///   device is then unchanged.
  func stage(
    from reader: RepositoryReader, _ counters: ProgressCounters,
    isStopping: @escaping @Sendable () -> Bool
  ) throws {
    for part in plan.restore?.parts ?? [] where isStaged(part) {
      let area = try area(at: part.plan.target.directory)
      try part.plan.requirePlanned(area.directory)
      let run = try RestoreRun(
        part.plan, in: area.directory, staging: area.staging, threads: Host.processors,
        counters: counters)
      run.expectFiles()
      var writer = try StagingWriter(
        run, reader, threads: Host.processors, isStopping: isStopping)
      do {
        try writer.write()
      } catch let error as OperationError where error.kind == .interrupted {
        throw OperationError(
          .interrupted,
          "the \(plan.request.change.rawValue) was interrupted: the device is unchanged")
      }
      try requireWhole(part, run)
      var roots = [try root(area.directory), try root(area.staging.tree)]
      let late = try part.plan.addingLateSidecars(for: run)
      // An app that has written since the plan may be running now.
      if late != nil { try plan.requireStopped() }
      let restored = late ?? part.plan
      var trash: TrashDirectory?
      if restored.displaces {
        let (number, kept) = try trashDirectory(for: part.path, from: area)
        roots.append(number)
        trash = kept
      }
      let numbered = try restored.numberingKeptEntries(for: run)
      for step in PlacementSteps(
        numbered, without: run.findings, hasTrash: trash != nil
      ).all {
        var step = step
        if step.kept == PlacementSteps.Root.kept { record(step, of: part, in: trash) }
        step.root = roots[step.root]
        step.source = step.source.map { roots[$0] }
        step.kept = step.kept.map { roots[$0] }
        add(step)
      }
      parts.append(StagedPart(plan: restored, run: run, trash: trash))
      try stageTrashRestores(to: part, area)
    }
  }

  private func record(_ step: JournalStep, of part: PlannedPart, in trash: TrashDirectory?) {
    guard let trash, let number = plan.containers.firstIndex(where: { $0.path == part.path }) else {
      return
    }
    let kept = step.path.parent.appending(step.keptName ?? step.path.lastComponent ?? "")
    displaced[number, default: []].append((step.path, trash.path.appending(kept)))
  }

  /// Whether data is restored to a container, from the snapshot or from the trash.
  func isStaged(_ part: PlannedPart) -> Bool {
    !part.plan.isIdle
      || plan.containers.contains { $0.path == part.path && !$0.trashRestores.isEmpty }
  }

  /// Adds the steps for data restored from the trash of the update: one rename each, after all data
  /// of the snapshot.
  private func stageTrashRestores(to part: PlannedPart, _ area: StagedExchange.StagingArea) throws {
    guard let planned = plan.containers.first(where: { $0.path == part.path }),
      !planned.trashRestores.isEmpty
    else { return }
    // A new container is in its staging directory.
    let made = try part.plan.target.name.map { try area.staging.tree.directory($0) }
    let inode = try made?.status().identity.inode ?? area.directory.status().identity.inode
    let container = root(part.target, inode: inode)
    for item in planned.trashRestores {
      try requireKept(item)
      // The directory in the trash that corresponds to the container.
      let top = ByteString(
        joining: item.from.components.dropLast(item.inner.components.count), isAbsolute: true)
      add(
        JournalStep(
          path: item.inner, root: container, source: try root(Directory.open(resolved: top))))
    }
    if planned.links.isEmpty { return }
    let name = ByteString(".sandboxctl-links-" + Host.randomHex(bytes: 4))
    try area.staging.tree.createDirectory(name, permissions: 0o700)
    try stageLinks(
      planned, in: area.staging.tree.directory(name), container: container, at: area)
  }

  /// Fails if an entry is no longer in the trash: its step would seem to be applied already.
  private func requireKept(_ item: PlannedContainer.TrashRestore) throws {
    let name = item.from.lastComponent ?? ""
    do throws(SystemError) {
      if try Directory.open(resolved: item.from.parent).statusIfPresent(name) != nil { return }
    } catch { if !error.isMissing { throw error } }
    throw OperationError(
      .failed, code: .changedSincePlan, plan.request.change.verb, subject: plan.request.app,
      reason: "'\(item.from)' is no longer in the trash",
      hint: "the trash was emptied since the plan was made: try again to roll back without it")
  }

  private func requireWhole(_ part: PlannedPart, _ run: RestoreRun) throws {
    var found = RestoreReport(part.plan)
    run.findings.add(to: &found, for: part.plan)
    let damaged = found.damaged + part.plan.damaged
    guard let lost = damaged.first ?? found.failed.first else { return }
    throw OperationError(
      .failed, code: damaged.isEmpty ? nil : .damaged,
      plan.request.change.verb, subject: plan.request.app,
      reason: "'\(part.logical(lost.path))' "
        + "cannot be restored: \(lost.remark)",
      hint: "nothing was changed; 'sandboxctl check' lists the damage, and 'sandboxctl restore' "
        + "restores the intact files")
  }

  /// Sets the times, modes and flags of directories that existed before.
  func finishParts(_ reader: RepositoryReader) -> [PathRemark] {
    var remarks: [PathRemark] = []
    for part in parts {
      do {
        var placement = try Placement(
          part.plan, from: part.run, keepingIn: part.trash, note: journal.opened)
        placement.finishDirectories(reader)
        placement.setFlags()
        var found = RestoreReport(part.plan)
        part.run.findings.add(to: &found, for: part.plan)
        remarks += found.failed.map {
          PathRemark(path: part.plan.request.path.appending($0.path), remark: $0.remark)
        }
      } catch { remarks.append(PathRemark(path: part.plan.request.path, remark: error.reason)) }
    }
    return remarks
  }
}

package import ArchiveStore
internal import DeviceDiscovery
package import DeviceScan
internal import PolicyEngine
internal import Restore
package import SandboxModel
package import SystemIO

extension AppChangePlan {
  /// Plans the return to the state before an app's last update: the previous bundle, and the data
  /// that the request selects. Changes nothing.
  ///
  /// - Parameter stored: the snapshot made before the update (`stateBefore`).
  /// - Throws: `OperationError`, `StoreError`.
  package static func rollback(
    _ scan: DeviceScan, _ request: AppChangeRequest, to stored: StoredSnapshot?,
    from reader: RepositoryReader?
  ) throws -> AppChangePlan {
    try AppChangePlanner(scan, request).rollback(to: stored, from: reader)
  }

  /// Returns the newest snapshot that was made before an update of the app on this device, or nil
  /// if there is none.
  package static func stateBefore(
    _ app: BundleIdentifier, on device: Device, among snapshots: [StoredSnapshot]
  ) -> StoredSnapshot? {
    let source = SourceIdentity.digest(of: device)
    let bundle = LogicalContainer.bundle(LogicalName(app.bytes)).prefix
    return snapshots.last { stored in
      stored.snapshot.reason == .preUpdate && stored.snapshot.source == source
        && stored.snapshot.device.containers.contains { $0.path == bundle }
    }
  }
}

extension AppChangePlanner {
  func rollback(
    to stored: StoredSnapshot?, from reader: RepositoryReader?
  ) throws -> AppChangePlan {
    var plan = plan()
    if plan.isSimulated {
      plan.containers = scan.containers.indices.map { keeping($0) }
      plan.commands = PlatformCommands.commands(for: request, on: device)
      return plan
    }
    if device.layout == .folder { return plan }
    guard let stored, let reader else {
      plan.refusals.append(
        Refusal(
          .noSnapshot, "the repository has no snapshot made before an update of the app",
          hint: "'sandboxctl snapshots' lists the snapshots; 'sandboxctl restore' restores one"))
      return plan
    }
    let restore = try DeviceRestorePlan.make(stored, restoreRequest, from: reader)
    plan.restore = restore
    let parts = Dictionary(
      restore.parts.map { ($0.path, $0) }, uniquingKeysWith: { first, _ in first })
    plan.containers = scan.containers.indices.filter {
      parts[scan.containers[$0].container.logicalPrefix] == nil
    }.map { keeping($0) }
    for part in restore.parts { add(part, &plan) }
    plan.containers.sort { $0.path < $1.path }
    planReturns(stored, &plan)
    plan.newer.sort()
    refuseNewer(&plan)
    return plan
  }

  private var restoreRequest: DeviceRestoreRequest {
    var wanted = DeviceRestoreRequest(
      device, isInPlace: true, policy: scan.policy, time: request.time)
    wanted.apps = request.app.bytes.utf8.map { [$0] } ?? []
    wanted.withGroups = request.withGroups
    wanted.replacesBundles = true
    wanted.leavesData = request.data == .now
    wanted.overwrite = request.data == .merge ? .ifNewer : .ifChanged
    wanted.comparesBytes = true
    wanted.deletes = request.data != .merge
    return wanted
  }

  private func add(_ part: PlannedPart, _ plan: inout AppChangePlan) {
    guard let logical = try? LogicalPath(part.path).place?.container else { return }
    let number = scan.containers.firstIndex { $0.container.logicalPrefix == part.path }
    var planned = PlannedContainer(
      logical, .restore, from: number == nil ? nil : part.target, to: part.target)
    planned.scanned = number
    if let number {
      let found = scan.containers[number]
      let (replaced, deleted) = (Set(part.plan.replacedPaths), Set(part.plan.deletedPaths))
      planned.paths =
        DataOutcomes(keeping: found, replacing: replaced, dropping: deleted).paths
      if logical.kind != .bundle {
        plan.newer += newer(in: found, replaced, deleted).map { part.path.appending($0) }
      }
    }
    planned.paths += RestoredPaths(part).paths
    planned.paths.sort { $0.path < $1.path }
    plan.containers.append(planned)
  }

  /// Returns the paths of data that the user may have created since: precious entries that would be
  /// replaced by different content or removed.
  package func newer(
    in found: ContainerScan, _ replaced: Set<ByteString>, _ deleted: Set<ByteString>
  ) -> [ByteString] {
    // A directory precedes everything below it.
    var isDeleted = [Bool](repeating: false, count: found.entries.count)
    return found.entries.indices.dropFirst().compactMap { index in
      let (entry, path) = (found.entries[index], found.path(index))
      isDeleted[index] = isDeleted[Int(entry.parent)] || deleted.contains(path)
      guard entry.verdicts.keep.dataClass.isPrecious else { return nil }
      let isReplaced = entry.status.kind != .directory && replaced.contains(path)
      return isDeleted[index] || isReplaced ? path : nil
    }
  }

  private func refuseNewer(_ plan: inout AppChangePlan) {
    if request.data == nil, !plan.newer.isEmpty {
      let shown = plan.newer.prefix(20).map { "'\($0)'" }.joined(separator: ", ")
      let more = plan.newer.count > 20 ? ", and \(plan.newer.count - 20) more" : ""
      plan.refusals.append(
        Refusal(
          .newerData, "data created since the update would be removed: \(shown)\(more)",
          hint: "choose '--data before' (move this data to the trash and into a snapshot), "
            + "'--data now' (keep the current data) or '--data merge' (restore only missing and "
            + "older files)"
        ))
    }
    let blocked = plan.restore.map { $0.damaged + $0.remarks(\.blocked) } ?? []
    for remark in blocked {
      plan.refusals.append(
        Refusal(.place, "'\(remark.path)' cannot be restored: \(remark.remark)"))
    }
  }
}

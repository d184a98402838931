internal import ArchiveStore
internal import Codecs
internal import DeviceDiscovery
internal import DeviceScan
internal import DeviceTransaction
internal import PolicyEngine
internal import Restore
internal import SandboxModel
internal import SystemIO

extension AppChangePlanner {
  func rollback(
    to stored: StoredSnapshot?, from reader: RepositoryReader?
  ) throws -> AppChangePlan {
    var plan = plan()
    if plan.isSimulated {
      plan.containers = scan.containers.indices.map { keeping($0) }
      plan.commands = platformCommands
      return plan
    }
    if device.layout == .folder { return plan }
    guard let stored, let reader else {
      plan.refuse(
        .noSnapshot, "the repository has no snapshot made before an update of the app",
        hint: "'sandboxctl snapshots' lists the snapshots; 'sandboxctl restore' restores one")
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
    planTrashRestores(stored, &plan)
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
    guard let logical = try? LogicalPath(part.path).location?.container else { return }
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
    planned.paths += restoredPaths(part)
    planned.paths.sort { $0.path < $1.path }
    plan.containers.append(planned)
  }

  /// Returns the entries of a snapshot that are restored to free paths of a container: the topmost
  /// paths of one class, as the snapshot recorded it, with the totals below them.
  private func restoredPaths(_ part: PlannedPart) -> [PlannedContainer.Path] {
    var paths: [PlannedContainer.Path] = []
    let (tree, top) = (part.plan.tree, part.plan.target.shownDepth)
    let classes = ClassFilter(known: part.plan.snapshot.snapshot)
    // The index in `paths` at which an entry is counted.
    var counted: [Int: Int] = [:]
    for number in tree.entries.indices {
      let entry = tree.entries[number]
      guard entry.action == .create, entry.depth >= max(top, 1) else { continue }
      let path = part.logical(part.plan.shownPath(number))
      let above = counted[Int(entry.parent)]
      let dataClass = DataClass(rawValue: classes.dataClass(of: path)) ?? .unknown
      if let above, paths[above].dataClass == dataClass {
        counted[number] = above
      } else {
        counted[number] = paths.count
        paths.append(PlannedContainer.Path(path: path, outcome: .restored, dataClass: dataClass))
      }
      if entry.kind == .file, let index = counted[number] {
        paths[index].totals.files += 1
        paths[index].totals.bytes += entry.size
      }
    }
    // The container itself is not data of the app.
    paths.removeAll { $0.path == part.path && $0.totals.files == 0 }
    return paths
  }

  /// Returns the paths of data that the user may have created since: precious entries that would be
  /// replaced by different content or removed.
  func newer(
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
      plan.refuse(
        .newerData, "data created since the update would be removed: \(shown)\(more)",
        hint: "choose '--data before' (move this data to the trash and into a snapshot), "
          + "'--data now' (keep the current data) or '--data merge' (restore only missing and "
          + "older files)")
    }
    let blocked = plan.restore.map { $0.damaged + $0.remarks(\.blocked) } ?? []
    for remark in blocked {
      plan.refuse(.location, "'\(remark.path)' cannot be restored: \(remark.remark)")
    }
  }
}

// MARK: - The trash of the update

/// Data that a rollback restores in addition to the snapshot: the entries that the update moved to
/// the trash, as long as they are there. An update followed by a rollback therefore restores the
/// original state even if the update discarded data that is never backed up.
extension AppChangePlanner {
  func planTrashRestores(_ stored: StoredSnapshot, _ plan: inout AppChangePlan) {
    guard request.data != .now, let parts = plan.restore?.parts,
      let item = try? Trash(of: device).unmeasured().last(where: {
        $0.operation == AppChange.update.rawValue && $0.saved == stored.id.hex
      })
    else { return }
    let anchors = anchors(to: plan, of: stored)
    for index in plan.containers.indices where plan.containers[index].logical.kind != .bundle {
      let planned = plan.containers[index]
      guard let part = parts.first(where: { $0.path == planned.path }) else { continue }
      var search = TrashRestores(
        part, planned.logical.kind, in: planned.scanned.map { scan.containers[$0] },
        anchors: anchors, policy: scan.policy)
      for directory in item.directories {
        guard let trash = try? Directory.open(resolved: directory.appending(planned.path)) else {
          continue
        }
        search.search(trash, leaving: ContainerMetadata.names(of: device.layout))
      }
      plan.containers[index].trashRestores = search.restores
      plan.containers[index].links = search.links.sorted { $0.path < $1.path }
    }
  }

  /// Returns the mapping from the containers' locations before the update to their current ones.
  private func anchors(to plan: AppChangePlan, of stored: StoredSnapshot) -> LinkAnchors {
    LinkAnchors(
      stored.snapshot.device.containers.compactMap { record in
        let planned = plan.containers.first { $0.path == record.path }
        let here = (try? LogicalPath(record.path).location?.container).flatMap {
          device.container($0)?.absolutePath
        }
        guard let to = planned?.to ?? here else { return nil }
        return LinkAnchors.Anchor(
          uuid: record.uuid.map { ByteString($0) }, from: record.realPath, to: to)
      })
  }
}

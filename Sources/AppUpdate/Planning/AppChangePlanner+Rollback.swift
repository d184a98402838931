internal import ArchiveStore
internal import Codecs
internal import DatabaseCapture
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
    plan.notes += restore.incompleteData.map { lacking in
      PathRemark(path: lacking.path, remark: "incomplete in the snapshot: \(lacking.remark)")
    }
    let parts = Dictionary(
      restore.parts.map { ($0.path, $0) }, uniquingKeysWith: { first, _ in first })
    plan.containers = scan.containers.indices.filter {
      parts[scan.containers[$0].container.logicalPrefix] == nil
    }.map { keeping($0) }
    for part in restore.parts { add(part, &plan) }
    plan.containers.sort { $0.path < $1.path }
    try planTrashRestores(stored, &plan)
    plan.newer.sort()
    refuseNewer(&plan)
    return plan
  }

  private var restoreRequest: DeviceRestoreRequest {
    var wanted = DeviceRestoreRequest(
      device, isInPlace: true, policy: scan.policy, savingTo: scan.options.destination,
      time: request.time)
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
    let hint = "'--data before' moves what is there to the trash, '--data now' keeps all data"
    for remark in blocked {
      plan.refuse(
        .location, "'\(remark.path)' cannot be restored: \(remark.remark)",
        hint: request.data == .merge ? hint : nil)
    }
  }
}

// MARK: - The trash of the update

/// Data that a rollback restores in addition to the snapshot: the entries that the update moved to
/// the trash, as long as they are there. An update followed by a rollback therefore restores the
/// original state even if the update discarded data that is never backed up.
extension AppChangePlanner {
  /// - Throws: `failed` if the trash cannot be read: without it the rollback would lack data.
  func planTrashRestores(
    _ stored: StoredSnapshot, _ plan: inout AppChangePlan
  ) throws(OperationError) {
    guard request.data != .now, let parts = plan.restore?.parts,
      let item = try trashItem(of: stored, &plan)
    else { return }
    let anchors = anchors(to: plan, of: stored)
    for index in plan.containers.indices where plan.containers[index].logical.kind != .bundle {
      let planned = plan.containers[index]
      guard let part = parts.first(where: { $0.path == planned.path }) else { continue }
      var search = TrashRestores(
        part, planned.logical.kind, in: planned.scanned.map { scan.containers[$0] },
        anchors: anchors, policy: scan.policy)
      for directory in item.directories {
        search.search(
          directory.appending(planned.path), leaving: ContainerMetadata.names(of: device.layout))
      }
      plan.containers[index].trashRestores = search.restores
      plan.containers[index].links = search.links.sorted { $0.path < $1.path }
      plan.unreadTrash += search.unread
    }
  }

  /// Returns what the update that made a snapshot moved to the trash; nil if it is empty, or if it
  /// may be what cannot be read.
  private func trashItem(
    of stored: StoredSnapshot, _ plan: inout AppChangePlan
  ) throws(OperationError) -> Trash.Item? {
    do throws(SystemError) {
      let listed = try Trash(of: device).listed()
      let item = listed.items.last {
        $0.operation == AppChange.update.rawValue && $0.saved == stored.id.hex
      }
      if item != nil { return item }
      let app = plan.path
      plan.unreadTrash += listed.unreadable.map { unread in
        PathRemark(
          path: app,
          remark: "what the update moved to the trash may be in '\(unread.path)', which cannot be "
            + "read: \(unread.remark)")
      }
      return nil
    } catch { throw OperationError(error) }
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

/// The entries of an update's trash that are restored to a container: all whose paths are neither
/// occupied now nor restored from the snapshot. Only the topmost are listed, each with everything
/// below it. A database, its log and its journal are restored only if none of their paths is
/// occupied: SQLite would apply a log beside another database to that one.
struct TrashRestores: ~Copyable {
  private let found: ContainerScan?
  /// The lookup of the container's entries by name.
  private let lookup: EntryLookup?
  private let part: PlannedPart
  private let anchors: LinkAnchors
  private var classifier: Classifier
  private let containerKind: ContainerKind
  private let deleted: Set<ByteString>
  private(set) var restores: [PlannedContainer.TrashRestore] = []
  private(set) var links: [PlannedContainer.Link] = []
  /// The entries of the trash that cannot be read and are not restored, by their logical paths.
  private(set) var unread: [PathRemark] = []

  /// Prepares the search.
  ///
  /// - Parameters:
  ///   - found: the current content of the container; nil if it is created.
  ///   - anchors: the current locations of the containers that links in the trash name.
  init(
    _ part: PlannedPart, _ kind: ContainerKind, in found: ContainerScan?, anchors: LinkAnchors,
    policy: CompiledPolicy
  ) {
    (self.part, self.containerKind, self.found, self.anchors) = (part, kind, found, anchors)
    lookup = found.map { EntryLookup($0) }
    classifier = Classifier(policy)
    deleted = Set(part.plan.deletedPaths)
  }

  /// Examines the directory of the trash at a path, if there is one.
  mutating func search(_ path: ByteString, leaving names: [ByteString]) {
    let tree = part.plan.tree
    let root = tree.entries.indices.first { tree.entries[$0].depth == part.plan.target.shownDepth }
    do throws(SystemError) {
      let trash = try Directory.open(resolved: path)
      try search(trash, at: "", planned: root, leaving: names)
    } catch { record(error, at: "") }
  }

  private mutating func record(_ error: SystemError, at inner: ByteString) {
    if error.isMissing { return }
    unread.append(
      PathRemark(
        path: part.path.appending(inner),
        remark: "what the update moved to the trash cannot be read and stays there: "
          + error.reason))
  }

  private mutating func search(
    _ trash: borrowing Directory, at path: ByteString, planned: Int?,
    leaving names: [ByteString] = []
  ) throws(SystemError) {
    let coming = planned.map { children(of: $0) } ?? [:]
    let present = lookup?.index(of: path)
    for name in try trash.names().sorted() where !names.contains(name) {
      guard let status = try trash.statusIfPresent(name) else { continue }
      let inner = path.appending(name)
      switch (kind(name, at: inner, coming: coming, present: present), status.kind) {
      case (nil, .file):
        if isBesideAnother(name, in: path, coming: coming, present: present) { continue }
        add(inner, status: status, in: trash, named: name)
      case (nil, _): add(inner, status: status, in: trash, named: name)
      case (.directory, .directory):
        do throws(SystemError) {
          try search(trash.directory(name), at: inner, planned: coming[name])
        } catch { record(error, at: inner) }
      default: break
      }
    }
  }

  /// Whether the path of another file of a database will be occupied, if a file in a directory is
  /// one of the database's.
  private func isBesideAnother(
    _ name: ByteString, in directory: ByteString, coming: [ByteString: Int], present: Int?
  ) -> Bool {
    let database = DatabaseUnit(DatabaseMember.owner(of: name)?.database ?? name)
    for member in [DatabaseMember.database, .log, .journal] {
      let other = database.name(of: member)
      if other == name { continue }
      let found = kind(other, at: directory.appending(other), coming: coming, present: present)
      if found == .file { return true }
    }
    return false
  }

  /// Returns the kind of the entry that a path will have after the restore, or nil if it will be
  /// free.
  private func kind(
    _ name: ByteString, at inner: ByteString, coming: [ByteString: Int],
    present: Int?
  ) -> FileKind? {
    if let number = coming[name] { return part.plan.tree.entries[number].kind }
    guard let found, let index = present.flatMap({ lookup?.child(named: name, of: $0) }),
      !deleted.contains(inner)
    else { return nil }
    return found.entries[index].status.kind
  }

  /// Returns the entries in a directory that are restored from the snapshot, or are present and
  /// merged.
  private func children(of directory: Int) -> [ByteString: Int] {
    let tree = part.plan.tree
    var found: [ByteString: Int] = [:]
    var number = directory + 1
    while number < tree.entries.count, tree.entries[number].depth > tree.entries[directory].depth {
      let entry = tree.entries[number]
      if Int(entry.parent) == directory, entry.action.isWritten || entry.isMerged {
        found[tree.name(number)] = number
      }
      number += 1
    }
    return found
  }

  private mutating func add(
    _ inner: ByteString, status: FileStatus, in trash: borrowing Directory,
    named name: ByteString
  ) {
    var totals = EntryTotals()
    totals.add(status)
    record(name, status: status, in: trash, at: inner)
    if status.kind == .directory, let directory = try? trash.directory(name) {
      var walk = Walk(directory)
      var all = Contents()
      walk.run(&all, state: ByteString(""))
      totals.add(all.totals)
      for (path, status) in all.links {
        guard let root = try? trash.directory(name) else { continue }
        var cursor = DirectoryCursor(root: root)
        try? cursor.withDirectory(at: path.components.dropLast()) { directory throws(SystemError) in
          record(
            path.lastComponent ?? "", status: status, in: directory, at: inner.appending(path))
        }
      }
    }
    let query = EntryQuery(
      containerKind, app: part.plan.request.rules?.app,
      path: inner.components.map { Array($0.bytes) },
      facts: EntryFacts(status.kind == .directory ? .directory : .file))
    restores.append(
      PlannedContainer.TrashRestore(
        inner: inner, from: trash.path.appending(name),
        dataClass: classifier.verdicts(query).keep.dataClass, totals: totals))
  }

  /// Records a link that named a container by its location before the update.
  private mutating func record(
    _ name: ByteString, status: FileStatus, in directory: borrowing Directory,
    at inner: ByteString
  ) {
    guard status.kind == .symlink, let before = try? directory.target(of: name),
      case .own(let after) = anchors.target(of: before)
    else { return }
    links.append(
      PlannedContainer.Link(
        path: part.path.appending(inner), before: before, after: after, inner: inner,
        status: status))
  }

  /// The content of a directory of the trash.
  private struct Contents: WalkVisitor {
    var totals = EntryTotals()
    var links: [(ByteString, FileStatus)] = []

    mutating func visit(
      _ batch: borrowing WalkBatch, of directory: borrowing WalkDirectory, state: ByteString,
      descent: inout WalkDescent<ByteString>
    ) {
      for (index, entry) in batch.entries.enumerated() {
        let path = state.appending(batch.name(entry))
        totals.add(entry.status)
        if entry.status.kind == .symlink { links.append((path, entry.status)) }
        if entry.status.kind == .directory { descent.enter(index, with: path) }
      }
    }

    mutating func failed(_ problem: WalkProblem, state: ByteString) {}
  }
}

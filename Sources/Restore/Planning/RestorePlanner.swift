package import ArchiveStore
internal import DeviceTransaction
internal import SandboxModel
package import SystemIO

extension RestorePlan {
  /// Plans a restore: walks the requested path of the snapshot and the target side by side.
  ///
  /// - Throws: `OperationError` of the kind `usage` if the target is not empty and the request
  ///   gives no overwrite mode; `StoreError` if nothing of the path's own directory can be read.
  package static func make(
    _ snapshot: StoredSnapshot, _ request: RestoreRequest, from reader: RepositoryReader
  ) throws -> RestorePlan {
    let source = try reader.source(request.path, in: snapshot)
    let place = try RestoreTarget.find(
      request.target, source: source, overwrite: request.overwrite,
      protecting: request.protected)
    return try make(snapshot, request, source: source, at: place, from: reader)
  }

  /// Plans a restore to a known target.
  static func make(
    _ snapshot: StoredSnapshot, _ request: RestoreRequest, source: SnapshotSource,
    at place: RestoreTarget, from reader: RepositoryReader
  ) throws -> RestorePlan {
    var planner = try RestorePlanner(RestorePlan(snapshot, request, at: place), reader)
    try planner.run(source)
    return planner.takePlan()
  }

  /// Plans a restore of a path of a snapshot to a new or empty directory.
  package static func make(
    _ snapshot: StoredSnapshot, path: ByteString, to target: ByteString,
    from reader: RepositoryReader
  ) throws -> RestorePlan {
    try make(snapshot, RestoreRequest(path: path, target: target), from: reader)
  }
}

/// Walks the snapshot's tree and the target side by side.
package struct RestorePlanner: ~Copyable {
  let reader: RepositoryReader
  package var plan: RestorePlan
  /// The target's directories down to the current one; nil if the target does not exist.
  var present: DirectoryLadder? = nil
  /// The snapshot's directories down to the current one.
  package var directories: [OpenDirectory] = []
  var leaders: [ByteString: LinkLeader] = [:]
  /// The link groups of the leaders, and the later hard links to each, by the leader's number.
  var groups: [Int: ByteString] = [:]
  var followers: [Int: [Int]] = [:]
  var selector: RestoreSelector
  /// The proof that unchanged files have the stored content; nil if it is not required.
  var proof: ContentProof?
  let removals: PolicyRemovals
  let unlistedExclusions: UnlistedExclusions
  let spared: SparedPaths
  /// The stray files that are removed with restored databases.
  var orphanedSidecars: Set<RestorePlan.Child> = []
  /// Indexes of the deletions by the replacing entry and by the deleted child, and of the databases
  /// by their members.
  var replaced = AppendOnlyIndex<Int>()
  var deleted = AppendOnlyIndex<RestorePlan.Child>()
  var units = AppendOnlyIndex<Int>()
  private var bound: PlanLimit
  var damage: RestorePlan.RemarkLimit

  /// A directory of the snapshot that the walk is in.
  package struct OpenDirectory {
    let number: Int
    /// The length of its path in the walk.
    let pathLength: Int
    /// Names in the target that the walk has not found in the snapshot; nil if nothing is to be
    /// removed.
    var unseen: Set<ByteString>?
    /// The names in the snapshot that cannot be read.
    var lost = UnreadableRanges()
    /// The frame of the directory's children.
    var frame: RestoreSelector.Frame
    /// Whether the directory is only above restored entries.
    var isParentOnly: Bool
    /// Its files, if it is merged.
    var files: [Int] = []
    /// The snapshot's files that cannot be restored because of a conflict with an existing entry.
    var blocked: [ByteString] = []
    /// Whether an entry in it is restored.
    var hasContent = false
  }

  package init(_ plan: RestorePlan, _ reader: RepositoryReader) throws(OperationError) {
    self.plan = plan
    self.reader = reader
    selector = RestoreSelector(plan.request, plan.snapshot.snapshot)
    removals = PolicyRemovals(plan.request)
    unlistedExclusions = UnlistedExclusions(plan)
    spared = SparedPaths(
      plan.snapshot.snapshot, deletesExcluded: plan.request.deletesExcluded)
    bound = PlanLimit(plan.place, whole: nil)
    damage = RestorePlan.RemarkLimit(room: plan.request.remarkRoom)
    self.plan.tree.asideSuffix =
      plan.request.rules?.asideSuffix ?? PlannedTree.asideSuffix(at: Host.now())
    do throws(SystemError) {
      let directory = try Directory.open(resolved: plan.place.directory)
      self.plan.place.identity = try directory.status().identity
      if let now = plan.request.rules?.comparesBytesAt, plan.place.name == nil {
        proof = ContentProof(reader, since: plan.snapshot.snapshot.time, now: now, in: directory)
      }
      present = DirectoryLadder(root: directory)
    } catch {
      // A directory that cannot be read must not be mistaken for one that does not exist.
      guard error.isMissing else { throw OperationError(error) }
    }
  }

  consuming func takePlan() -> RestorePlan {
    damage.close(&plan.damaged)
    dropWithdrawn()
    return plan
  }

  mutating func run(_ source: SnapshotSource) throws {
    switch source {
    case .folder(let tree, let entry):
      let root = entry ?? TreeEntry(name: "", node: .directory(tree), permissions: 0o700)
      if let name = plan.place.name {
        let above = addRoot(TreeEntry(name: "", node: .directory(tree)), hasMetadata: false)
        let number = try add(root, named: name, in: above, hasMetadata: entry != nil)
        if let number { try walk(tree, below: number) }
      } else {
        let setsRoot = selector.rules?.setsRoot ?? true
        let number = addRoot(root, hasMetadata: entry != nil && setsRoot)
        try decideRoot(root, number)
        try walk(tree, below: number)
      }
    case .single(let entry):
      let tree = TreeReference(plan.snapshot.snapshot.tree.digest)
      let above = addRoot(TreeEntry(name: "", node: .directory(tree)), hasMetadata: false)
      let number = try add(entry, named: plan.place.name ?? entry.name, in: above)
      if let number, entry.node.kind == .file {
        try settleDatabase(number, in: above)
        leaveAlone(number, named: plan.tree.name(number), in: above)
      }
    }
  }

  /// Adds the directory that the restore works in as the first entry.
  private mutating func addRoot(_ entry: TreeEntry, hasMetadata: Bool) -> Int {
    let number = plan.tree.append(
      entry, named: "", parent: nil, action: .leave, hasMetadata: hasMetadata)
    plan.tree.update(number) { $0.isMerged = true }
    return number
  }

  /// Decides about the target directory's own metadata.
  private mutating func decideRoot(_ entry: TreeEntry, _ number: Int) throws {
    guard plan.tree.entries[number].hasMetadata else { return }
    let comparison = Comparison(reader: reader, mode: mode)
    let action = try present?.withDirectory { directory in
      try comparison.action(for: entry, directory.status(), in: directory, nil)
    }
    if let action { plan.tree.update(number) { $0.action = action } }
  }

  var mode: OverwriteMode { plan.request.overwrite ?? .always }

  // MARK: - The walk

  private mutating func walk(_ tree: TreeReference, below root: Int) throws {
    let isWhole = selector.isIdle && plan.request.overwrite == nil
    bound = PlanLimit(
      plan.place, whole: isWhole ? tree : nil, first: plan.request.firstLimit)
    enter(root, pathLength: 0, selector.root())
    let first = plan.tree.entries.count
    var lost: StoreError?
    try reader.walkPastDamage(tree) { path, finding in
      switch finding {
      case .damage(let error):
        if path.isEmpty, plan.tree.entries.count == first { throw error }
        noteDamage(at: path, error: error)
        return .skip
      case .lost(let names, let error):
        noteDamage(at: path, error: error, losing: names)
        if path.isEmpty { lost = lost ?? error }
        return .skip
      case .entry(let entry):
        try bound.check(plan.tree, creating: plan.creates.entries, from: reader)
        return try take(entry, at: path)
      }
    }
    // Without a single entry no directory is created.
    if let lost, plan.tree.entries.count == first { throw lost }
    leave(to: -1)
  }

  /// Processes an entry of the snapshot by its path in the walk.
  private mutating func take(_ stored: TreeEntry, at path: ByteString) throws -> TreeWalk.Step {
    leave(to: max(0, path.count - stored.name.count - 1))
    // The directory itself is not copied, or each removal of a name would copy the set of names.
    guard let (above, outer) = directories.last.map({ ($0.number, $0.frame) }) else { return .stop }
    if isOwn(stored.name, at: path) { return refuseOwn(stored.name, at: path) }
    let (role, frame) = selector.select(stored, at: path, in: outer)
    if role != .remove { directories[directories.count - 1].unseen?.remove(stored.name) }
    if role == .skip || role == .remove { return .skip }
    let entry = anchored(stored, at: path)
    guard let number = try add(entry, named: entry.name, in: above, role: role) else {
      return .skip
    }
    guard entry.isDirectory else { return .enter }
    if role == .empty { return .skip }
    enter(number, pathLength: path.count, frame, isParentOnly: role == .parentOnly)
    return .enter
  }

  /// Whether an entry has the name of one of the program's own directories at a container's root.
  /// No backup has such an entry, and a journal or a trash from a snapshot would later be trusted.
  private func isOwn(_ name: ByteString, at path: ByteString) -> Bool {
    selector.rules != nil && path.count == name.count && OwnNames.has(name)
  }

  private mutating func refuseOwn(_ name: ByteString, at path: ByteString) -> TreeWalk.Step {
    directories[directories.count - 1].unseen?.remove(name)
    plan.blocked.append(
      PathRemark(path: path, remark: "its name is reserved for this program"))
    return .skip
  }

  /// Adds an entry with the decision about it. Returns its number, or nil if an existing entry
  /// conflicts with it.
  ///
  /// - Throws: `OperationError` if the entry is the target itself and cannot be examined.
  @discardableResult
  mutating func add(
    _ entry: TreeEntry, named name: ByteString, in directory: Int, hasMetadata: Bool = true,
    role: RestoreSelector.Role = .whole
  ) throws(OperationError) -> Int? {
    let above = plan.tree.entries[directory]
    var decision = Decision(action: .create)
    if above.isMerged, present != nil {
      do {
        decision = try decide(entry, named: name, depth: Int(above.depth))
      } catch {
        if plan.place.name != nil, directory == 0, let error = error as? SystemError {
          throw OperationError(error)
        }
        let path = plan.tree.path(directory, from: plan.place.shownDepth).appending(name)
        plan.blocked.append(PathRemark(path: path, remark: RestoreReport.reason(error)))
        if entry.node.kind == .file, !directories.isEmpty {
          directories[directories.count - 1].blocked.append(name)
        }
        return nil
      }
    }
    // A directory that is only above restored entries, or is restored empty, is kept if it exists.
    if role != .whole, decision.action != .create {
      guard decision.isMerged else {
        let path = plan.tree.path(directory, from: plan.place.shownDepth).appending(name)
        plan.blocked.append(PathRemark(path: path, remark: Conflict.noDirectory.reason))
        return nil
      }
      decision.action = .leave
    }
    let leader = findLeader(of: entry, &decision)
    let number = plan.tree.append(
      entry, named: name, parent: directory, action: decision.action, hasMetadata: hasMetadata,
      mayBeRestored: mode == .ifNewer && decision.action == .leave)
    plan.tree.update(number) { planned in
      planned.isMerged = decision.isMerged
      planned.changesKind = decision.changesKind
      planned.isMovedAside = decision.isMovedAside
    }
    if let leader {
      plan.tree.link(number, to: leader)
      followers[leader, default: []].append(number)
    }
    noteLeader(number, entry: entry, decision: decision)
    if let lost = decision.replacedDirectory {
      plan.deletes.add(lost)
      plan.deletions.append(
        RestorePlan.Deletion(directory: directory, name: name, totals: lost, replacement: number))
    }
    if entry.node.kind == .file, above.isMerged, !directories.isEmpty {
      directories[directories.count - 1].files.append(number)
    }
    if role == .parentOnly { return number }
    count(number)
    if !directories.isEmpty { directories[directories.count - 1].hasContent = true }
    return number
  }

  mutating func count(_ number: Int) {
    let entry = plan.tree.entries[number]
    guard plan.isCounted(entry) else { return }
    switch entry.action {
    case .create: plan.creates.count(entry.kind, size: entry.size)
    case .replace: plan.replaces.count(entry.kind, size: entry.size)
    case .same, .leave: plan.leaves.count(entry.kind, size: entry.size)
    }
  }

  private mutating func enter(
    _ number: Int, pathLength: Int, _ frame: RestoreSelector.Frame, isParentOnly: Bool = false
  ) {
    var directory = OpenDirectory(
      number: number, pathLength: pathLength, frame: frame, isParentOnly: isParentOnly)
    let mayRemove = plan.request.deletes && frame.isInside || !removals.isEmpty
    if mayRemove, plan.tree.entries[number].isMerged { directory.unseen = list(number) }
    directories.append(directory)
    addMade(in: number, frame)
  }

  /// Returns the names in the target's current directory. If it cannot be listed, nothing in it is
  /// removed, and that is reported.
  private mutating func list(_ number: Int) -> Set<ByteString>? {
    do throws(SystemError) {
      return try present?.withDirectory { directory throws(SystemError) in
        Set(try directory.names())
      }
    } catch {
      let reason = "it cannot be listed, so nothing in it is removed: \(error.reason)"
      plan.blocked.append(PathRemark(path: plan.shownPath(number), remark: reason))
      return nil
    }
  }

  /// Leaves the directories whose paths are longer.
  mutating func leave(to pathLength: Int) {
    while let last = directories.last, last.pathLength > pathLength {
      // This precedes the deletions, because the log of a kept database is kept.
      settleDatabases(in: last)
      if let unseen = last.unseen, !unseen.isEmpty {
        planDeletions(unseen, in: last)
      }
      directories.removeLast()
      if last.isParentOnly { settle(last) }
    }
  }
}

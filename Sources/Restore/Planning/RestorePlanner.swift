package import ArchiveStore
internal import DeviceTransaction
internal import SandboxModel
internal import SystemIO

extension RestorePlan {
  /// Plans a restore: walks the requested path of the snapshot and the target side by side.
  ///
  /// - Throws: `OperationError` of the kind `usage` if the target is not empty and the request
  ///   gives no overwrite mode; `StoreError` if nothing of the path's own directory can be read.
  package static func make(
    _ snapshot: StoredSnapshot, _ request: RestoreRequest, from reader: RepositoryReader
  ) throws -> RestorePlan {
    // A whole container needs most of the trees. Whether a deeper directory does is known only once
    // it is found.
    if request.path.components.count <= 2 { reader.expectTrees() }
    let source = try reader.source(request.path, in: snapshot)
    let found = try RestoreTarget.find(
      request.target, source: source, overwrite: request.overwrite,
      protecting: request.protected)
    return try make(snapshot, request, source: source, at: found, from: reader)
  }

  /// Plans a restore to a known target.
  static func make(
    _ snapshot: StoredSnapshot, _ request: RestoreRequest, source: SnapshotSource,
    at target: RestoreTarget, from reader: RepositoryReader
  ) throws -> RestorePlan {
    var planner = try RestorePlanner(RestorePlan(snapshot, request, at: target), reader)
    try planner.run(source)
    return planner.finish()
  }
}

/// Walks the snapshot's tree and the target side by side.
struct RestorePlanner: ~Copyable {
  private let reader: RepositoryReader
  var draft: PlanDraft
  var target: PresentTarget
  /// The snapshot's directories down to the current one.
  var directories: [OpenDirectory] = []
  var selector: RestoreSelector
  /// The existing entry in the place of a directory that the walk is in; nil if there is none.
  var obstacle: Obstacle?
  private var decider: EntryDecider
  private let deletions: DeletionPlanner
  private var limit: PlanLimit
  private var damage: RestorePlan.RemarkLimit

  /// A directory of the snapshot that the walk is in.
  struct OpenDirectory {
    let number: Int
    /// The length of its path in the walk.
    let pathLength: Int
    /// Names in the target that the walk has not found in the snapshot; nil if nothing is to be
    /// removed.
    var unseen: UnseenNames?
    /// The names in the snapshot that cannot be read.
    var lost = UnreadableRanges()
    /// The frame of the directory's children.
    var frame: RestoreSelector.Frame
    /// Whether the directory is only above restored entries.
    var isParentOnly = false
    /// Its files, if it is merged.
    var files = SpillableArray<UInt32>()
    /// The snapshot's files that cannot be restored because of a conflict with an existing entry.
    var blocked: [ByteString] = []
    /// Whether an entry in it is restored.
    var hasContent = false
    /// Whether an entry in it would have been restored, or may have been.
    var isUncertain = false

    /// Whether it is removed as a whole, which its own directory does.
    var isGone: Bool { frame.isRemoved && !hasContent && !isUncertain && lost.isEmpty }
  }

  init(_ plan: RestorePlan, _ reader: RepositoryReader) throws(OperationError) {
    self.reader = reader
    draft = PlanDraft(plan)
    target = PresentTarget(
      protected: plan.request.protected, sparesOwnData: !plan.request.deletesExcluded)
    selector = RestoreSelector(
      plan.request, plan.snapshot.snapshot, from: reader, scanned: draft.scanned)
    decider = EntryDecider(plan.request, from: reader)
    deletions = DeletionPlanner(plan)
    limit = PlanLimit(plan.target, whole: nil)
    damage = RestorePlan.RemarkLimit(room: plan.request.remarkRoom)
    do throws(SystemError) {
      let directory = try Directory.open(resolved: plan.target.directory)
      draft.plan.target.identity = try directory.status().identity
      if let now = plan.request.rules?.comparesBytesAt, plan.target.name == nil {
        decider.proof = ContentProof(
          reader, since: plan.snapshot.snapshot.time, now: now, in: directory)
      }
      target.cursor = DirectoryCursor(root: directory)
    } catch {
      // A directory that cannot be read must not be mistaken for one that does not exist.
      guard error.isMissing else { throw OperationError(error) }
    }
  }

  /// Returns the plan.
  consuming func finish() -> RestorePlan {
    damage.close(&draft.plan.damaged)
    return draft.finish()
  }

  mutating func run(_ source: SnapshotSource) throws {
    switch source {
    case .directory(let tree, let entry):
      let root = entry ?? TreeEntry(name: "", node: .directory(tree), permissions: 0o700)
      if let name = draft.plan.target.name {
        let above = addRoot(TreeEntry(name: "", node: .directory(tree)), hasMetadata: false)
        let number = try add(root, named: name, in: above, hasMetadata: entry != nil)
        if let number { try walk(tree, of: root, below: number) }
      } else {
        let setsRoot = selector.rules?.setsRoot ?? true
        let number = addRoot(root, hasMetadata: entry != nil && setsRoot)
        try decideRoot(root, number)
        try walk(tree, of: root, below: number)
      }
    case .single(let entry):
      let tree = TreeReference(draft.plan.snapshot.snapshot.tree.digest)
      let above = addRoot(TreeEntry(name: "", node: .directory(tree)), hasMetadata: false)
      let number = try add(entry, named: draft.plan.target.name ?? entry.name, in: above)
      if let number, entry.node.kind == .file { try settleDatabase(number, in: above) }
    }
  }

  /// Adds the directory that the restore works in as the first entry.
  private mutating func addRoot(_ entry: TreeEntry, hasMetadata: Bool) -> Int {
    let number = draft.plan.tree.append(
      entry, named: "", parent: nil, action: .leave, hasMetadata: hasMetadata)
    draft.plan.tree.update(number) { $0.isMerged = true }
    return number
  }

  /// Decides about the target directory's own metadata.
  private mutating func decideRoot(_ entry: TreeEntry, _ number: Int) throws {
    guard draft.plan.tree.entries[number].hasMetadata else { return }
    let decider = decider
    let action = try target.cursor?.withDirectory { directory in
      try decider.action(for: entry, directory.status(), in: directory, named: nil)
    }
    if let action { draft.plan.tree.update(number) { $0.action = action } }
  }

  // MARK: - The walk

  private mutating func walk(
    _ tree: TreeReference, of entry: TreeEntry, below root: Int
  ) throws {
    let isWhole = selector.isIdle && draft.plan.request.overwrite == nil
    limit = PlanLimit(
      draft.plan.target, whole: isWhole ? tree : nil, first: draft.plan.request.firstLimit)
    reader.expectTrees()
    let frame = selector.root(entry)
    if !passContainer(root, frame) { enter(root, pathLength: 0, frame) }
    let first = draft.plan.tree.entries.count
    var lost: StoreError?
    try reader.walkPastDamage(tree) { path, finding in
      switch finding {
      case .damage(let error):
        if path.isEmpty, draft.plan.tree.entries.count == first { throw error }
        recordDamage(at: path, error: error)
        return .skip
      case .lost(let names, let error):
        recordDamage(at: path, error: error, losing: names)
        if path.isEmpty { lost = lost ?? error }
        return .skip
      case .entry(let entry):
        if entry.isDirectory { try requireNotStopping() }
        try limit.check(draft.plan.tree, creating: draft.plan.creates.entries, from: reader)
        return try add(entry, at: path)
      }
    }
    // If no entry was added, no directory is created.
    if let lost, draft.plan.tree.entries.count == first { throw lost }
    finishDirectories(to: -1)
  }

  private func requireNotStopping() throws(OperationError) {
    if draft.plan.request.isStopping() { throw .planningInterrupted }
  }

  /// Adds an entry of the snapshot by its path in the walk, and enters it if it is a directory.
  private mutating func add(_ stored: TreeEntry, at path: ByteString) throws -> TreeWalk.Step {
    finishDirectories(to: max(0, path.count - stored.name.count - 1))
    // The directory is not copied, because each removal of a name would then copy the set of names.
    guard let (above, outer) = directories.last.map({ ($0.number, $0.frame) }) else { return .stop }
    if isOwn(stored.name, at: path) { return refuseOwn(stored.name, at: path) }
    let reader = reader
    let (role, frame) = selector.select(stored, at: path, in: outer) {
      reader.mayBeDatabase($0, beside: $1)
    }
    if role != .remove, role != .removedParent {
      directories[directories.count - 1].unseen?.remove(stored.name)
    }
    if role == .omitted || role == .remove && selector.wants(frame) { draft.countOmitted(stored) }
    if role == .remove { return .skip }
    if role == .skip || role == .omitted {
      // The snapshot has it, so it is not deleted, even if the directory is to be removed.
      if draft.plan.request.deletes { directories[directories.count - 1].isUncertain = true }
      return .skip
    }
    if obstacle != nil { return passBehindObstacle(stored, at: path, frame, role: role) }
    let entry = anchored(stored, at: path)
    guard let number = try add(entry, named: entry.name, in: above, role: role) else {
      return pass(entry, at: path, frame, role: role)
    }
    guard entry.isDirectory else { return .enter }
    enter(number, pathLength: path.count, frame, isParentOnly: role.isParentOnly)
    return .enter
  }

  /// Whether an entry has the name of one of the program's own directories at the root of a
  /// container or of a plain target. A journal or a trash from a snapshot would belong to the user
  /// there, and would be trusted if the target is later used as a device.
  private func isOwn(_ name: ByteString, at path: ByteString) -> Bool {
    path.count == name.count && OwnNames.has(name)
  }

  private mutating func refuseOwn(_ name: ByteString, at path: ByteString) -> TreeWalk.Step {
    directories[directories.count - 1].unseen?.remove(name)
    draft.block(path, "its name is reserved for this program")
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
    let above = draft.plan.tree.entries[directory]
    var decision = EntryDecider.Decision(action: .create)
    if above.isMerged, target.exists {
      do {
        decision = try decider.decide(
          entry, named: name, at: Int(above.depth), in: &target)
        if decision.action == .replace, !decision.changesKind, !entry.isDirectory {
          decision.isMovedAside = mustBeKept(name)
        }
      } catch {
        if draft.plan.target.name != nil, directory == 0, let error = error as? SystemError {
          throw OperationError(error)
        }
        block(entry, named: name, in: directory, because: error)
        return nil
      }
    }
    // A directory that is only above restored entries, or is restored empty, is kept if it exists.
    if role != .whole, decision.action != .create {
      guard decision.isMerged else {
        draft.block(
          draft.path(directory).appending(name), PresentTarget.Conflict.noDirectory.reason)
        return nil
      }
      decision.action = .leave
    }
    let number = draft.append(
      entry, named: name, in: directory, decision: decision, hasMetadata: hasMetadata)
    if entry.node.kind == .file, above.isMerged, !directories.isEmpty {
      directories[directories.count - 1].files.append(UInt32(number))
    }
    if role.isParentOnly { return number }
    draft.count(number)
    if !directories.isEmpty { directories[directories.count - 1].hasContent = true }
    return number
  }

  /// Records that an entry cannot be restored because of the existing one.
  private mutating func block(
    _ entry: TreeEntry, named name: ByteString, in directory: Int, because error: any Error
  ) {
    draft.block(draft.path(directory).appending(name), PresentTarget.Conflict.reason(error))
    guard let current = directories.indices.last else { return }
    directories[current].isUncertain = true
    if entry.node.kind == .file { directories[current].blocked.append(name) }
  }

  /// Whether the existing entry in the current directory is kept under another name; false for a
  /// single requested file.
  func mustBeKept(_ name: ByteString) -> Bool {
    guard let directory = directories.last?.number else { return false }
    return draft.mustBeKept(name, in: directory)
  }

  private mutating func enter(
    _ number: Int, pathLength: Int, _ frame: RestoreSelector.Frame, isParentOnly: Bool = false
  ) {
    var directory = OpenDirectory(
      number: number, pathLength: pathLength, frame: frame, isParentOnly: isParentOnly)
    // The caches in a directory that is restored empty stay as they are.
    if !frame.isEmptied, deletions.mayRemove(frame), draft.plan.tree.entries[number].isMerged {
      directory.unseen = list(number)
    }
    directories.append(directory)
    addMade(in: number, frame)
  }

  /// Returns the names in the target's current directory. If it cannot be listed, nothing in it is
  /// removed, and that is reported.
  private mutating func list(_ number: Int) -> UnseenNames? {
    do throws(SystemError) {
      return try target.names()
    } catch {
      draft.block(number, "it cannot be listed, so nothing in it is removed: \(error.reason)")
      return nil
    }
  }

  /// Leaves the directories whose paths are longer.
  mutating func finishDirectories(to pathLength: Int) {
    while let last = directories.last, last.pathLength > pathLength {
      // This precedes the deletions, because the log of a kept database is kept.
      DatabasePlanner.settleAll(in: last, &draft, beside: &target)
      if let unseen = last.unseen, unseen.count > 0, !last.isGone {
        deletions.planDeletions(unseen.names, in: last, draft: &draft, target: &target)
      }
      directories.removeLast()
      if !last.isGone { keep(last) }
      if last.isParentOnly { settle(last) }
      if last.pathLength == obstacle?.pathLength { leaveObstacle(last) }
    }
  }

  /// Records that a directory, or a range of its names, cannot be read.
  private mutating func recordDamage(
    at path: ByteString, error: StoreError, losing names: UnreadableNames = .any
  ) {
    finishDirectories(to: path.count)
    if let last = directories.indices.last, directories[last].pathLength == path.count {
      directories[last].lost.add(names)
    }
    if !error.needsOlderKey { draft.plan.isDamaged = true }
    damage.add(
      PathRemark(path: path.isEmpty ? "." : path, remark: error.reason), to: &draft.plan.damaged)
  }

  // MARK: - A single database

  /// Plans a single requested database: its log and its journal are restored with it, and files
  /// of another state beside it are moved away.
  private mutating func settleDatabase(_ number: Int, in directory: Int) throws {
    let name = draft.plan.tree.name(number)
    var entries = [name: number]
    var blocked: Set<ByteString> = []
    var lost = UnreadableRanges()
    for suffix in DatabasePlanner.companions {
      let companion = name.followed(by: suffix)
      guard let stored = try storedCompanion(suffix, named: companion, in: directory, &lost) else {
        continue
      }
      guard companion.count <= Int(UInt8.max),
        let added = try add(stored, named: companion, in: directory)
      else {
        blocked.insert(companion)
        continue
      }
      // The request gives no overwrite mode, so the existing file is kept.
      if draft.plan.request.overwrite == nil, draft.plan.tree.entries[added].action == .replace {
        draft.plan.tree.update(added) { $0.isMovedAside = true }
      }
      entries[companion] = added
    }
    DatabasePlanner(
      directory: directory, depth: draft.plan.tree.entries[directory].depth, entries: entries,
      there: nil, blocked: blocked, lost: lost, isWhole: false
    ).settle(single: number, in: &draft, beside: &target)
  }

  /// Returns the log or the journal of the requested file. If damage hides whether there is one,
  /// that is recorded and the file itself can still be restored.
  private mutating func storedCompanion(
    _ suffix: [UInt8], named companion: ByteString, in directory: Int,
    _ lost: inout UnreadableRanges
  ) throws(StoreError) -> TreeEntry? {
    let path = draft.plan.request.path.followed(by: suffix)
    do throws(StoreError) {
      let stored = try reader.entry(at: path, in: draft.plan.snapshot.snapshot.tree)
      return stored?.node.kind == .file ? stored : nil
    } catch {
      guard error.kind == .damaged else { throw error }
      lost.add(.one(companion))
      if !error.needsOlderKey { draft.plan.isDamaged = true }
      draft.plan.damaged.append(
        PathRemark(
          path: draft.path(directory).appending(companion),
          remark: "it may exist: \(error.reason)"))
      return nil
    }
  }
}

public import ArchiveStore
internal import SandboxModel
public import SystemIO

extension RestorePlan {
  /// Plans a restore: walks what is asked for, and beside it what is in the target.
  ///
  /// - Throws: `LifecycleError` of the kind `usage` when the target holds something and the request
  ///   does not say what becomes of it; `StoreError` when nothing of the path's own directory can be read.
  public static func make(
    _ snapshot: StoredSnapshot, _ request: RestoreRequest, from reader: RepositoryReader
  ) throws -> RestorePlan {
    let source = try reader.source(request.path, in: snapshot)
    let place = try RestoreTarget.find(
      request.target, source: source, overwrite: request.overwrite,
      protecting: request.protected)
    return try make(snapshot, request, source, at: place, from: reader)
  }

  /// Plans a restore to a place that is known.
  static func make(
    _ snapshot: StoredSnapshot, _ request: RestoreRequest, _ source: SnapshotSource,
    at place: RestoreTarget, from reader: RepositoryReader
  ) throws -> RestorePlan {
    var planner = try RestorePlanner(RestorePlan(snapshot, request, place), reader)
    try planner.run(source)
    return planner.takePlan()
  }

  /// Plans to restore a path of a snapshot to a new place, or an empty directory.
  public static func make(
    _ snapshot: StoredSnapshot, path: ByteString, to target: ByteString,
    from reader: RepositoryReader
  ) throws -> RestorePlan {
    try make(snapshot, RestoreRequest(path: path, target: target), from: reader)
  }
}

/// Goes through the snapshot's tree and the target's side by side.
struct RestorePlanner: ~Copyable {
  let reader: RepositoryReader
  var plan: RestorePlan
  /// The target's directories down to the one in hand; nothing where there is nothing yet.
  var present: DirectoryLadder? = nil
  /// The snapshot's directories down to the one in hand.
  var directories: [OpenDirectory] = []
  var leaders: [ByteString: LinkLeader] = [:]
  /// The groups of the leaders, and the later names that are to be links to each, by its number.
  var groups: [Int: ByteString] = [:]
  var followers: [Int: [Int]] = [:]
  var judge: RestoreJudge
  /// Where what looks unchanged has to have the stored bytes.
  var proof: ContentProof?
  let removals: PolicyRemovals
  let nameless: UnlistedExclusions
  let spared: SparedPaths
  /// What goes with databases that come, so that it belongs to none that stays.
  var strays: Set<DirectoryChild> = []
  /// The deletions by what takes their place and by what goes, and the databases by their files.
  var replaced = LateIndex<Int>()
  var deleted = LateIndex<DirectoryChild>()
  var units = LateIndex<Int>()
  private var bound: PlanLimit
  var damage: RemarkLimit

  /// A directory of the snapshot that is being gone through.
  struct OpenDirectory {
    let number: Int
    /// The length of its path in the walk.
    let pathLength: Int
    /// Names in the target that the snapshot has not named; nothing where none are to be removed.
    var unseen: Set<ByteString>?
    /// Names in the snapshot that cannot be read.
    var lost = UnreadableRanges()
    /// What the request and the policy say of what is in it.
    var frame: RestoreFrame
    /// Whether it is only on the way to what comes back.
    var isWay: Bool
    /// Its files, where it is merged into.
    var files: [Int] = []
    /// Files of the snapshot that cannot come, as something stands in their way.
    var blocked: [ByteString] = []
    /// Whether something in it comes back.
    var hasContent = false
  }

  init(_ plan: RestorePlan, _ reader: RepositoryReader) throws(LifecycleError) {
    self.plan = plan
    self.reader = reader
    judge = RestoreJudge(plan.request, plan.snapshot.snapshot)
    removals = PolicyRemovals(plan.request)
    nameless = UnlistedExclusions(plan)
    spared = SparedPaths(
      plan.snapshot.snapshot, deletesExcluded: plan.request.deletesExcluded)
    bound = PlanLimit(plan.place, whole: nil)
    damage = RemarkLimit(room: plan.request.remarkRoom)
    self.plan.tree.asideSuffix = plan.request.rules?.asideSuffix ?? AsideName.suffix(at: Host.now())
    do throws(SystemError) {
      let directory = try Directory.open(resolved: plan.place.directory)
      self.plan.place.identity = try directory.status().identity
      if let now = plan.request.rules?.comparesBytesAt, plan.place.name == nil {
        proof = ContentProof(reader, since: plan.snapshot.snapshot.time, now: now, in: directory)
      }
      present = DirectoryLadder(root: directory)
    } catch {
      // What cannot be looked at must not be taken for a place where nothing is.
      guard error.isMissing else { throw LifecycleError(error) }
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
        let setsRoot = judge.rules?.setsRoot ?? true
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

  /// Begins with the directory that the restore works in.
  private mutating func addRoot(_ entry: TreeEntry, hasMetadata: Bool) -> Int {
    let number = plan.tree.append(
      entry, named: "", parent: nil, action: .leave, hasMetadata: hasMetadata)
    plan.tree.update(number) { $0.isMerged = true }
    return number
  }

  /// Says what becomes of the target directory's own metadata.
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
    let isWhole = judge.isIdle && plan.request.overwrite == nil
    bound = PlanLimit(
      plan.place, whole: isWhole ? tree : nil, first: plan.request.firstBound)
    enter(root, pathLength: 0, judge.root())
    let first = plan.tree.entries.count
    var lost: StoreError?
    try reader.walkPastDamage(tree) { path, finding in
      switch finding {
      case .damage(let error):
        if path.isEmpty, plan.tree.entries.count == first { throw error }
        noteDamage(path, error)
        return .skip
      case .lost(let names, let error):
        noteDamage(path, error, names)
        if path.isEmpty { lost = lost ?? error }
        return .skip
      case .entry(let entry):
        try bound.check(plan.tree, creating: plan.creates.entries, from: reader)
        return try take(entry, at: path)
      }
    }
    // Of nothing at all no directory is made.
    if let lost, plan.tree.entries.count == first { throw lost }
    leave(to: -1)
  }

  /// Takes an entry of the snapshot, by its path in the walk.
  private mutating func take(_ stored: TreeEntry, at path: ByteString) throws -> WalkStep {
    leave(to: max(0, path.count - stored.name.count - 1))
    // No copy of the directory is held, or removing a name would copy all that are left of it.
    guard let (above, outer) = directories.last.map({ ($0.number, $0.frame) }) else { return .stop }
    if isOwn(stored.name, at: path) { return refuseOwn(stored.name, at: path) }
    let (role, frame) = judge.judge(stored, at: path, in: outer)
    if role != .remove { directories[directories.count - 1].unseen?.remove(stored.name) }
    if role == .skip || role == .remove { return .skip }
    let entry = anchored(stored, at: path)
    guard let number = try add(entry, named: entry.name, in: above, role: role) else {
      return .skip
    }
    guard entry.isDirectory else { return .enter }
    if role == .empty { return .skip }
    enter(number, pathLength: path.count, frame, isWay: role == .way)
    return .enter
  }

  /// Whether an entry has the name of the program's own directories at a container's root: no backup has
  /// one, and a journal or a trash that came so would be trusted later.
  private func isOwn(_ name: ByteString, at path: ByteString) -> Bool {
    judge.rules != nil && path.count == name.count && OwnNames.has(name)
  }

  private mutating func refuseOwn(_ name: ByteString, at path: ByteString) -> WalkStep {
    directories[directories.count - 1].unseen?.remove(name)
    plan.blocked.append(
      PathRemark(path: path, remark: "its name is that of this program's own directory"))
    return .skip
  }

  /// Adds an entry with what is to be done with it; nothing when something stands in its way.
  ///
  /// - Throws: `LifecycleError` when that is the target itself and cannot be looked at.
  @discardableResult
  mutating func add(
    _ entry: TreeEntry, named name: ByteString, in directory: Int, hasMetadata: Bool = true,
    role: RestoreRole = .whole
  ) throws(LifecycleError) -> Int? {
    let above = plan.tree.entries[directory]
    var decision = Decision(action: .create)
    if above.isMerged, present != nil {
      do {
        decision = try decide(entry, named: name, depth: Int(above.depth))
      } catch {
        if plan.place.name != nil, directory == 0, let error = error as? SystemError {
          throw LifecycleError(error)
        }
        let path = plan.tree.path(directory, from: plan.place.shownDepth).appending(name)
        plan.blocked.append(PathRemark(path: path, remark: RestoreReport.reason(error)))
        if entry.node.kind == .file, !directories.isEmpty {
          directories[directories.count - 1].blocked.append(name)
        }
        return nil
      }
    }
    // What only lies on the way, or comes back empty, stays as it is where it is.
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
      mayCome: mode == .ifNewer && decision.action == .leave)
    plan.tree.update(number) { planned in
      planned.isMerged = decision.isMerged
      planned.changesKind = decision.changesKind
      planned.isPutAside = decision.isPutAside
    }
    if let leader {
      plan.tree.link(number, to: leader)
      followers[leader, default: []].append(number)
    }
    noteLeader(number, entry, decision)
    if let lost = decision.replacedDirectory {
      plan.deletes.add(lost)
      plan.deletions.append(
        PlannedDeletion(directory: directory, name: name, totals: lost, replacement: number))
    }
    if entry.node.kind == .file, above.isMerged, !directories.isEmpty {
      directories[directories.count - 1].files.append(number)
    }
    if role == .way { return number }
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
    _ number: Int, pathLength: Int, _ frame: RestoreFrame, isWay: Bool = false
  ) {
    var directory = OpenDirectory(
      number: number, pathLength: pathLength, frame: frame, isWay: isWay)
    let mayRemove = plan.request.deletes && frame.isInside || !removals.isEmpty
    if mayRemove, plan.tree.entries[number].isMerged { directory.unseen = list(number) }
    directories.append(directory)
    addMade(in: number, frame)
  }

  /// The names in the target's directory in hand. Of one that cannot be listed nothing is removed, which
  /// is said.
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
      // Before the deletions: the log of a database that stays does so, too.
      settleDatabases(in: last)
      if let unseen = last.unseen, !unseen.isEmpty {
        planDeletions(unseen, in: last)
      }
      directories.removeLast()
      if last.isWay { settle(last) }
    }
  }
}

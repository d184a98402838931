internal import ArchiveStore
internal import DeviceScan
internal import DeviceTransaction
internal import SystemIO

/// A plan in progress, with everything needed to withdraw a decision: if a file is not restored,
/// neither are its hard links and its database, and the directory that it would have replaced is
/// kept.
struct PlanDraft: ~Copyable {
  /// The first name of a hard-linked file that has the snapshot's content.
  private struct LinkLeader {
    let number: Int
    /// The node of the entry.
    let node: Node
    /// The identity of the existing file, if it is kept.
    let identity: FileIdentity?
  }

  /// An index by key over an append-only list, for plans that rarely look up elements but may do so
  /// often. Each lookup indexes the elements appended since the last one, so n lookups take n steps
  /// and a plan without lookups pays nothing.
  private struct AppendOnlyIndex<Key: Hashable> {
    private var positions: [Key: Int] = [:]
    private var count = 0

    /// Returns the index of the last element with a key.
    mutating func position<Element>(
      of key: Key, in list: [Element], keys: (Element) -> some Sequence<Key>
    ) -> Int? {
      for position in count..<list.count {
        for key in keys(list[position]) { positions[key] = position }
      }
      count = list.count
      return positions[key]
    }
  }

  var plan: RestorePlan
  /// The present entries of the target by path, as the policy scanned them; nil without rules.
  let scanned: EntryLookup?
  /// The stray files that are removed with restored databases.
  private(set) var orphanedSidecars: Set<RestorePlan.Child> = []

  private var leaders: [ByteString: LinkLeader] = [:]
  /// The link groups of the leaders, and the later hard links to each, by the leader's number.
  private var groups: [Int: ByteString] = [:]
  private var followers: [Int: [Int]] = [:]
  /// Indexes of the deletions by the replacing entry and by the deleted child, and of the databases
  /// by their members.
  private var replaced = AppendOnlyIndex<Int>()
  private var deleted = AppendOnlyIndex<RestorePlan.Child>()
  private var members = AppendOnlyIndex<Int>()

  init(_ plan: RestorePlan) {
    self.plan = plan
    scanned = plan.request.rules?.present.map { EntryLookup($0) }
    self.plan.tree.asideSuffix =
      plan.request.rules?.asideSuffix ?? PlannedTree.asideSuffix(at: Host.now())
  }

  var mode: OverwriteMode { plan.request.overwrite ?? .always }

  /// Returns the finished plan, without everything withdrawn.
  consuming func finish() -> RestorePlan {
    plan.deletions.removeAll { $0.isWithdrawn }
    plan.databases.removeAll { $0.isWithdrawn }
    return plan
  }

  // MARK: - Adding

  /// Appends an entry with the decision about it. Returns its number. The caller counts it.
  mutating func append(
    _ entry: TreeEntry, named name: ByteString, in directory: Int,
    decision: consuming EntryDecider.Decision, hasMetadata: Bool
  ) -> Int {
    let leader = findLeader(of: entry, &decision)
    let number = plan.tree.append(
      entry, named: name, parent: directory, action: decision.action, hasMetadata: hasMetadata,
      mayBeRestored: mode == .ifNewer && decision.action == .leave)
    if let existing = decision.existing, decision.action == .replace || decision.action == .leave {
      plan.tree.note(existing, of: number)
    }
    let (isMerged, changesKind) = (decision.isMerged, decision.changesKind)
    let isMovedAside = decision.isMovedAside
    plan.tree.update(number) { planned in
      planned.isMerged = isMerged
      planned.changesKind = changesKind
      planned.isMovedAside = isMovedAside
    }
    if let leader {
      plan.tree.link(number, to: leader)
      followers[leader, default: []].append(number)
    }
    recordLeader(number, entry: entry, decision: decision)
    if let lost = decision.replacedDirectory {
      plan.deletes.add(lost)
      plan.deletions.append(
        RestorePlan.Deletion(directory: directory, name: name, totals: lost, replacement: number))
    }
    return number
  }

  /// Adds an entry to the totals of its action.
  mutating func count(_ number: Int) {
    let entry = plan.tree.entries[number]
    guard plan.isCounted(entry) else { return }
    switch entry.action {
    case .create: plan.creates.count(entry.kind, size: entry.size)
    case .replace: plan.replaces.count(entry.kind, size: entry.size)
    case .same, .leave: plan.leaves.count(entry.kind, size: entry.size)
    }
  }

  /// Counts a file of the snapshot that the policy does not restore.
  mutating func countOmitted(_ entry: TreeEntry) {
    var size: UInt64 = 0
    if case .file(let content) = entry.node { size = content.size }
    plan.omitted.count(entry.node.kind, size: size)
  }

  mutating func append(_ database: RestorePlan.Database) {
    plan.databases.append(database)
    orphanedSidecars.formUnion(database.children)
  }

  mutating func append(_ deletion: RestorePlan.Deletion) {
    plan.deletes.add(deletion.totals)
    plan.deletions.append(deletion)
  }

  /// Records that an entry cannot be restored.
  mutating func block(_ number: Int, _ remark: String) {
    plan.blocked.append(PathRemark(path: plan.shownPath(number), remark: remark))
  }

  /// Records that an entry cannot be restored or removed.
  mutating func block(_ path: ByteString, _ remark: String) {
    plan.blocked.append(PathRemark(path: path, remark: remark))
  }

  /// Records that an entry that the snapshot does not have is kept.
  mutating func spare(_ path: ByteString, _ remark: String) {
    plan.spared.append(PathRemark(path: path, remark: remark))
  }

  /// Returns the path of a directory below the target.
  func path(_ directory: Int) -> ByteString {
    plan.tree.path(directory, from: plan.target.shownDepth)
  }

  /// Whether the existing entry of a name is kept under another name: if it is the path that the
  /// user selected, or is excluded from backups, so that none would have it.
  func mustBeKept(_ name: ByteString, in directory: Int) -> Bool {
    guard let rules = plan.request.rules else { return false }
    let above = path(directory)
    if rules.isSelected(above.appending(name)) { return true }
    guard let index = scanned?.index(of: above.appending(name)) else { return false }
    return rules.present?.entries[index].selection == .excluded
  }

  // MARK: - Names of one file

  /// Returns the earlier entry that this one is a hard link to. A name under which the backup read
  /// another content, because the file changed meanwhile, is a separate file. An unchanged existing
  /// file is kept only if it is a link to the same file.
  private func findLeader(
    of entry: TreeEntry, _ decision: inout EntryDecider.Decision
  ) -> Int? {
    guard let group = entry.linkGroup, let leader = leaders[group], leader.node == entry.node
    else { return nil }
    switch decision.action {
    case .create, .replace: return leader.number
    case .leave: return nil
    case .same:
      if decision.identity == leader.identity || mode != .ifChanged { return nil }
      decision.action = .replace
      return leader.number
    }
  }

  /// Records an entry for later names of its file to link to.
  private mutating func recordLeader(
    _ number: Int, entry: TreeEntry, decision: EntryDecider.Decision
  ) {
    guard let group = entry.linkGroup, leaders[group] == nil, decision.action != .leave else {
      return
    }
    groups[number] = group
    leaders[group] = LinkLeader(
      number: number, node: entry.node,
      identity: decision.action == .same ? decision.identity : nil)
  }

  // MARK: - Withdrawing

  /// Removes an entry and its later hard links from the entries to write.
  mutating func withdraw(_ number: Int) {
    let entry = plan.tree.entries[number]
    guard entry.action.isWritten else { return }
    var totals = RestoreTotals()
    totals.count(entry.kind, size: entry.size)
    if entry.action == .create {
      plan.creates.subtract(totals)
    } else {
      plan.replaces.subtract(totals)
      plan.leaves.add(totals)
    }
    plan.tree.update(number) { $0.action = .leave }
    keepDirectory(inPlaceOf: number)
    guard let group = groups.removeValue(forKey: number) else { return }
    // Hard links that follow have the content themselves.
    leaders[group] = nil
    for other in followers.removeValue(forKey: number) ?? []
    where plan.tree.entries[other].action.isWritten {
      withdraw(other)
      // A link in a directory that is already planned may belong to a database in it.
      dissolve(databaseOf: other)
      block(other, "it is a hard link to '\(plan.tree.name(number))', which is kept")
    }
  }

  /// Replaces a file that would have been kept because of its own time. A hard link to a kept file
  /// is not changed.
  ///
  /// - Parameter directory: its directory; nil for a single file.
  mutating func replaceAfterAll(_ number: Int, in directory: Int?) {
    let entry = plan.tree.entries[number]
    guard entry.action == .leave, plan.tree.leader(number) == nil else { return }
    var totals = RestoreTotals()
    totals.count(entry.kind, size: entry.size)
    plan.leaves.subtract(totals)
    plan.replaces.add(totals)
    let isMovedAside = directory.map { mustBeKept(plan.tree.name(number), in: $0) } ?? false
    plan.tree.update(number) { planned in
      planned.action = .replace
      planned.isMovedAside = isMovedAside
    }
  }

  /// Keeps a directory that the entry would have replaced, with everything in it.
  private mutating func keepDirectory(inPlaceOf number: Int) {
    guard plan.tree.entries[number].changesKind,
      let position = replaced.position(
        of: number, in: plan.deletions, keys: { [$0.replacement ?? -1] })
    else { return }
    withdrawDeletion(position)
  }

  /// Keeps a database if one of its files is not restored.
  private mutating func dissolve(databaseOf number: Int) {
    guard
      let position = members.position(of: number, in: plan.databases, keys: { $0.members }),
      !plan.databases[position].isWithdrawn
    else { return }
    plan.databases[position].isWithdrawn = true
    let database = plan.databases[position]
    for child in database.children {
      orphanedSidecars.remove(child)
      if let position = deleted.position(of: child, in: plan.deletions, keys: { [$0.child] }) {
        withdrawDeletion(position)
      }
    }
    for member in database.members where plan.tree.entries[member].action.isWritten {
      withdraw(member)
      block(member, JournalStep.brokenItemReason)
    }
  }

  private mutating func withdrawDeletion(_ position: Int) {
    guard !plan.deletions[position].isWithdrawn else { return }
    plan.deletions[position].isWithdrawn = true
    plan.deletes.subtract(plan.deletions[position].totals)
  }
}

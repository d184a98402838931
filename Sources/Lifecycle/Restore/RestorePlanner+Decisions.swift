internal import ArchiveStore
internal import SystemIO

/// What is to be done with an entry, as what stands in its place decides.
struct Decision {
  var action: RestoreAction
  var isMerged = false
  var changesKind = false
  /// Whether what stands there is kept under another name.
  var isPutAside = false
  /// What the directory holds that a file is to replace.
  var replacedDirectory: RestoreTotals?
  /// What stands there, where it is to stay.
  var identity: FileIdentity?
}

/// The first name of a file with several that has the snapshot's content.
struct LinkLeader {
  let number: Int
  /// What it holds.
  let node: Node
  /// Which file it is, where it is there already.
  let identity: FileIdentity?
}

/// What stands in the way of an entry.
struct Conflict: Error {
  let reason: String

  static let mount = Conflict(reason: "another volume is mounted there")
  static let repository = Conflict(reason: "the repository in use lies there")
  static let noDirectory = Conflict(reason: "no directory stands there, and what is there stays")
  static let directory = Conflict(
    reason: "a directory stands there that is not empty; only '--delete' removes it")

  static func kept(_ kind: FileKind) -> Conflict {
    Conflict(
      reason: "\(kind == .directory ? "a directory" : "something else") stands there and stays")
  }
}

extension RestorePlanner {
  /// Looks at what stands in an entry's place, in the directory of the target at a depth.
  mutating func decide(
    _ entry: TreeEntry, named name: ByteString, depth: Int
  ) throws -> Decision {
    try present?.ascend(to: depth)
    let comparison = Comparison(reader: reader, mode: mode)
    let protected = plan.request.protected
    var proof = self.proof.take()
    defer { self.proof = proof }
    let found = try present?.withDirectory { directory -> (FileStatus, RestoreAction)? in
      guard let status = try directory.statusIfPresent(name) else { return nil }
      if status.isMountPoint { throw Conflict.mount }
      if protected.contains(status.identity) { throw Conflict.repository }
      var action = try comparison.action(for: entry, status, in: directory, name)
      if action == .same,
        try proof?.hasBytes(of: entry, status, at: depth, in: directory, name) == false
      {
        action = comparison.mode == .ifNewer ? .leave : .replace
      }
      return (status, action)
    }
    guard let (status, action) = found ?? nil else { return Decision(action: .create) }
    switch (entry.node.kind == .directory, status.kind == .directory) {
    case (true, true):
      proof?.enter(status, at: depth)
      return try decideDirectory(name, action)
    case (false, false):
      return Decision(
        action: action, isPutAside: action == .replace && mustStay(name),
        identity: action == .same ? status.identity : nil)
    case (true, false):
      guard action == .replace else { throw Conflict.kept(status.kind) }
      return Decision(action: .replace, changesKind: true)
    case (false, true):
      guard action == .replace else { throw Conflict.kept(status.kind) }
      return Decision(
        action: .replace, changesKind: true, replacedDirectory: try totals(ofDirectory: name))
    }
  }

  /// A directory that is there is merged into; the empty one that a new target may be is replaced.
  private mutating func decideDirectory(
    _ name: ByteString, _ action: RestoreAction
  ) throws -> Decision {
    if plan.request.overwrite == nil { return Decision(action: .replace) }
    try present?.descend(name)
    return Decision(action: action, isMerged: true)
  }

  /// What a directory holds that is to give way; an obstacle where it may not.
  private mutating func totals(ofDirectory name: ByteString) throws -> RestoreTotals {
    var contents = PresentEntries(protected: plan.request.protected)
    try present?.withDirectory { directory in try contents.read(directory.directory(name)) }
    if let reason = contents.protection { throw Conflict(reason: reason) }
    if contents.totals.entries > 0, !plan.request.deletes { throw Conflict.directory }
    return contents.totals
  }

  // MARK: - Names of one file

  /// The earlier entry that this one is another name of. A name under which the file was read with
  /// another content, as it changed meanwhile, is a file of its own. What is there as it should be stays
  /// only if it is that file.
  func findLeader(of entry: TreeEntry, _ decision: inout Decision) -> Int? {
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

  /// Lets later names of the file be links to this one.
  mutating func noteLeader(_ number: Int, _ entry: TreeEntry, _ decision: Decision) {
    guard let group = entry.linkGroup, leaders[group] == nil, decision.action != .leave else {
      return
    }
    groups[number] = group
    leaders[group] = LinkLeader(
      number: number, node: entry.node,
      identity: decision.action == .same ? decision.identity : nil)
  }

  // MARK: - Deletions

  /// Plans to remove what the snapshot lacks in a directory, where that is asked for, but for what it
  /// knows that it left out and what the policy keeps out of backups; and what the policy removes.
  mutating func planDeletions(_ names: Set<ByteString>, in directory: Int, isAsked: Bool) {
    let entry = plan.tree.entries[directory]
    let above = plan.tree.path(directory, from: plan.place.shownDepth)
    let scanned = names.isEmpty ? nil : judge.present?.index(of: above)
    // A database comes before its log, as names go.
    var gone: Set<ByteString> = []
    for name in names.sorted() where !(entry.depth == 0 && StagingDirectory.isOurs(name)) {
      switch removals.verdict(
        on: scanned.flatMap { judge.present?.child(named: name, of: $0) }, isAsked: isAsked)
      {
      case .stays: break
      case .spare:
        plan.spared.append(
          PathRemark(path: above.appending(name), remark: "the policy keeps it out of backups"))
      case .removeParts: planParts(of: name, in: directory, isAsked: isAsked)
      case .remove:
        if let database = databaseThatStays(
          with: name, in: directory, lacking: names, gone: gone)
        {
          plan.spared.append(
            PathRemark(
              path: above.appending(name), remark: "it belongs to '\(database)', which stays"))
        } else if planDeletion(of: name, in: directory, above) {
          gone.insert(name)
        }
      }
    }
  }

  /// Plans to remove something; false when it stays, which is said.
  private mutating func planDeletion(
    of name: ByteString, in directory: Int, _ above: ByteString
  ) -> Bool {
    do {
      let path = plan.request.path.appending(above).appending(name)
      if let reason = spared.reasonToSpare(path) {
        throw Conflict(reason: reason)
      }
      let totals = try totals(of: name, depth: Int(plan.tree.entries[directory].depth))
      // The index of a database that comes is none that anybody wants.
      let isIndex =
        name.isSharedMemory && strays.contains(DirectoryChild(directory: directory, name: name))
      if totals.directories == 0, !isIndex, let reason = nameless.reasonToSpare(path) {
        throw Conflict(reason: reason)
      }
      plan.deletes.add(totals)
      plan.deletions.append(
        PlannedDeletion(directory: directory, name: name, totals: totals, replacement: nil))
      return true
    } catch let obstacle as Conflict {
      plan.spared.append(PathRemark(path: above.appending(name), remark: obstacle.reason))
    } catch { block(above.appending(name), error) }
    return false
  }

  /// Leaves what cannot be looked through: it may hold what has to stay.
  private mutating func block(_ path: ByteString, _ error: any Error) {
    let reason = "it cannot be looked through, so it is not removed: "
    plan.blocked.append(PathRemark(path: path, remark: reason + RestoreReport.reason(error)))
  }

  /// Goes into a directory that the snapshot lacks, of which not all is to be removed.
  private mutating func planParts(of name: ByteString, in directory: Int, isAsked: Bool) {
    let entry = plan.tree.entries[directory]
    do throws(SystemError) {
      try present?.ascend(to: Int(entry.depth))
      try present?.descend(name)
      let inner = try present?.withDirectory { directory throws(SystemError) in
        try directory.names()
      }
      let tree = TreeReference(plan.snapshot.snapshot.tree.digest)
      let number = plan.tree.append(
        TreeEntry(name: name, node: .directory(tree)), named: name, parent: directory,
        action: .leave, hasMetadata: false)
      plan.tree.update(number) { $0.isMerged = true }
      planDeletions(Set(inner ?? []), in: number, isAsked: isAsked)
    } catch { block(plan.tree.path(directory, from: plan.place.shownDepth).appending(name), error) }
  }

  private mutating func totals(of name: ByteString, depth: Int) throws -> RestoreTotals {
    try present?.ascend(to: depth)
    var contents = PresentEntries(protected: plan.request.protected)
    try present?.withDirectory { directory in
      guard let status = try directory.statusIfPresent(name) else { return }
      if contents.note(status), status.kind == .directory {
        try contents.read(directory.directory(name))
      }
    }
    if let reason = contents.protection { throw Conflict(reason: reason) }
    return contents.totals
  }
}

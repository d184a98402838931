internal import ArchiveStore
internal import DeviceScan
internal import DeviceTransaction
internal import SystemIO

/// The decision about an entry, which depends on the existing one.
struct Decision {
  var action: PlannedTree.Action
  var isMerged = false
  var changesKind = false
  /// Whether the existing entry is kept under another name.
  var isMovedAside = false
  /// The contents of a directory that a file replaces.
  var replacedDirectory: RestoreTotals?
  /// The identity of the existing file, if it is kept.
  var identity: FileIdentity?
}

/// The first name of a hard-linked file that has the snapshot's content.
struct LinkLeader {
  let number: Int
  /// The node of the entry.
  let node: Node
  /// The identity of the existing file, if it is kept.
  let identity: FileIdentity?
}

/// An existing entry that prevents an action.
struct Conflict: Error {
  let reason: String

  static let mount = Conflict(reason: "another volume is mounted there")
  static let repository = Conflict(reason: "the repository in use is there")
  static let noDirectory = Conflict(reason: "the existing entry is not a directory and is kept")
  static let directory = Conflict(
    reason: "a directory that is not empty is there; only '--delete' removes it")

  static func kept(_ kind: FileKind) -> Conflict {
    Conflict(
      reason: "the existing \(kind == .directory ? "directory" : "entry") is kept")
  }
}

extension RestorePlanner {
  /// Decides about an entry by the existing one in the target's directory at a depth.
  mutating func decide(
    _ entry: TreeEntry, named name: ByteString, depth: Int
  ) throws -> Decision {
    try present?.ascend(to: depth)
    let comparison = Comparison(reader: reader, mode: mode)
    let protected = plan.request.protected
    var proof = self.proof.take()
    defer { self.proof = proof }
    let found = try present?.withDirectory { directory -> (FileStatus, PlannedTree.Action)? in
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
        action: action, isMovedAside: action == .replace && mustBeKept(name),
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

  /// Decides about an existing directory: it is merged into, except for an empty one that a new
  /// target replaces.
  private mutating func decideDirectory(
    _ name: ByteString, _ action: PlannedTree.Action
  ) throws -> Decision {
    if plan.request.overwrite == nil { return Decision(action: .replace) }
    try present?.descend(name)
    return Decision(action: action, isMerged: true)
  }

  /// Returns the contents of a directory to replace.
  ///
  /// - Throws: `Conflict` if it must be kept.
  private mutating func totals(ofDirectory name: ByteString) throws -> RestoreTotals {
    var contents = PresentEntries(protected: plan.request.protected)
    try present?.withDirectory { directory in try contents.read(directory.directory(name)) }
    if let reason = contents.protection { throw Conflict(reason: reason) }
    if contents.totals.entries > 0, !plan.request.deletes { throw Conflict.directory }
    return contents.totals
  }

  // MARK: - Names of one file

  /// Returns the earlier entry that this one is a hard link to. A name under which the backup read
  /// another content, because the file changed meanwhile, is a separate file. An unchanged existing
  /// file is kept only if it is a link to the same file.
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

  /// Records an entry for later names of its file to link to.
  mutating func noteLeader(_ number: Int, entry: TreeEntry, decision: Decision) {
    guard let group = entry.linkGroup, leaders[group] == nil, decision.action != .leave else {
      return
    }
    groups[number] = group
    leaders[group] = LinkLeader(
      number: number, node: entry.node,
      identity: decision.action == .same ? decision.identity : nil)
  }

  // MARK: - Deletions

  /// Plans the deletions in a directory: of entries that the snapshot does not have, if requested,
  /// except those that the snapshot recorded as excluded and those that the policy excludes from
  /// backups; and of entries that the policy removes.
  mutating func planDeletions(_ names: Set<ByteString>, in directory: Int, isAsked: Bool) {
    let entry = plan.tree.entries[directory]
    let above = plan.tree.path(directory, from: plan.place.shownDepth)
    let scanned = names.isEmpty ? nil : selector.present?.index(of: above)
    // A database sorts before its log.
    var gone: Set<ByteString> = []
    for name in names.sorted() where !(entry.depth == 0 && StagingDirectory.isOurs(name)) {
      switch removals.verdict(
        on: scanned.flatMap { selector.present?.child(named: name, of: $0) }, isAsked: isAsked)
      {
      case .stays: break
      case .spare:
        plan.spared.append(
          PathRemark(path: above.appending(name), remark: "the policy excludes it from backups"))
      case .removeParts: planParts(of: name, in: directory, isAsked: isAsked)
      case .remove:
        if let database = databaseThatStays(
          with: name, in: directory, lacking: names, gone: gone)
        {
          plan.spared.append(
            PathRemark(
              path: above.appending(name), remark: "it belongs to '\(database)', which is kept"))
        } else if planDeletion(of: name, in: directory, above) {
          gone.insert(name)
        }
      }
    }
  }

  /// Plans to delete an entry. Returns false if it is kept, with a remark.
  private mutating func planDeletion(
    of name: ByteString, in directory: Int, _ above: ByteString
  ) -> Bool {
    do {
      let path = plan.request.path.appending(above).appending(name)
      if let reason = spared.reasonToSpare(path) {
        throw Conflict(reason: reason)
      }
      let totals = try totals(of: name, depth: Int(plan.tree.entries[directory].depth))
      // The index of a restored database is never needed.
      let isIndex =
        name.isSharedMemory
        && orphanedSidecars.contains(RestorePlan.Child(directory: directory, name: name))
      if totals.directories == 0, !isIndex, let reason = unlistedExclusions.reasonToSpare(path) {
        throw Conflict(reason: reason)
      }
      plan.deletes.add(totals)
      plan.deletions.append(
        RestorePlan.Deletion(directory: directory, name: name, totals: totals, replacement: nil))
      return true
    } catch let conflict as Conflict {
      plan.spared.append(PathRemark(path: above.appending(name), remark: conflict.reason))
    } catch { block(above.appending(name), error) }
    return false
  }

  /// Keeps an entry that cannot be read completely: it may contain protected entries.
  private mutating func block(_ path: ByteString, _ error: any Error) {
    let reason = "its contents cannot be read, so it is not removed: "
    plan.blocked.append(PathRemark(path: path, remark: reason + RestoreReport.reason(error)))
  }

  /// Plans the deletions in a directory that the snapshot does not have, of which a part is kept.
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

/// Directories of which the repository does not have all names.
extension RestorePlanner {
  /// Plans the deletions in a directory. If names of the snapshot are lost, an existing entry may
  /// be one of them: then nothing is deleted, and the directory is reported.
  mutating func planDeletions(_ unseen: Set<ByteString>, in directory: OpenDirectory) {
    let isAsked = plan.request.deletes && directory.frame.isInside
    if directory.lost.isEmpty {
      planDeletions(unseen, in: directory.number, isAsked: isAsked)
    } else if isAsked {
      let reason = "some of its names in the snapshot cannot be read, so nothing in it is removed"
      plan.spared.append(PathRemark(path: plan.shownPath(directory.number), remark: reason))
    }
  }

  /// Records that a directory, or a range of its names, cannot be read.
  mutating func noteDamage(
    at path: ByteString, error: StoreError, losing names: UnreadableNames = .any
  ) {
    leave(to: path.count)
    if let last = directories.indices.last, directories[last].pathLength == path.count {
      directories[last].lost.add(names)
    }
    damage.add(
      PathRemark(path: path.isEmpty ? "." : path, remark: error.reason), to: &plan.damaged)
  }
}

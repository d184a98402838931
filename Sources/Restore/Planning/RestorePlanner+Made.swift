internal import ArchiveStore
internal import DeviceScan
internal import PolicyEngine
internal import SystemIO

/// Additional actions of a restore into a device: recreating empty directories, generating the
/// layout's files, and adjusting links.
extension RestorePlanner {
  /// Adds entries that are restored to a directory although the snapshot does not have them.
  mutating func addMade(in parent: Int, _ frame: RestoreSelector.Frame) {
    guard let rules = selector.rules else { return }
    let top = draft.plan.target.shownDepth
    let isWhole = frame.isInside && !frame.isEmptied && !frame.isRemoved
    if isWhole, draft.plan.request.classes.isEmpty, !rules.emptied.isEmpty {
      let path = draft.plan.tree.path(parent, from: top)
      for directory in rules.emptied[path] ?? [] { addEmptied(directory, in: parent) }
    }
    // A new container is found by these files, even if only a part of it is restored.
    if draft.plan.tree.entries[parent].depth <= top {
      for (name, bytes) in rules.generated.sorted(by: { $0.key < $1.key }) {
        addGenerated(name, in: parent, bytes)
      }
    }
  }

  /// Adds an empty directory with its recorded metadata, or with that of its parent if none is
  /// recorded. An existing entry is kept.
  private mutating func addEmptied(_ directory: RestoreRules.EmptiedDirectory, in parent: Int) {
    let name = directory.name
    if let present = present(name, in: parent) {
      // The user may have moved a cache to another disk by a link.
      if present == .directory || present == .symlink { return }
      return draft.block(
        draft.path(parent).appending(name), "the existing entry is not a directory")
    }
    let above = draft.plan.tree.entries[parent]
    let entry =
      directory.entry?.named(name)
      ?? TreeEntry(
        name: name, node: .directory(TreeReference(draft.plan.snapshot.snapshot.tree.digest)),
        permissions: above.permissions & 0o777, owner: above.owner, group: above.group,
        modified: Host.now())
    _ = addMade(entry, in: parent)
  }

  /// Adds a generated file that its directory's owner owns. An existing entry is kept.
  private mutating func addGenerated(_ name: ByteString, in parent: Int, _ bytes: [UInt8]) {
    if present(name, in: parent) != nil { return }
    let above = draft.plan.tree.entries[parent]
    let entry = TreeEntry(
      name: name, node: .file(Content.empty), permissions: 0o644, owner: above.owner,
      group: above.group, modified: Host.now())
    draft.plan.tree.generate(addMade(entry, in: parent), bytes)
  }

  private mutating func addMade(_ entry: TreeEntry, in parent: Int) -> Int {
    let number = draft.plan.tree.append(entry, named: entry.name, parent: parent, action: .create)
    draft.count(number)
    directories[directories.count - 1].hasContent = true
    return number
  }

  /// Returns the kind of an existing entry in place of one to create, and excludes it from
  /// deletion.
  private mutating func present(_ name: ByteString, in parent: Int) -> FileKind? {
    directories[directories.count - 1].unseen?.remove(name)
    guard draft.plan.tree.entries[parent].isMerged else { return nil }
    return try? target.kind(of: name, at: draft.plan.tree.entries[parent].depth)
  }

  /// Finishes a directory that is only above restored entries: it is created if something in it is
  /// restored.
  mutating func settle(_ directory: OpenDirectory) {
    if directory.hasContent {
      if !directories.isEmpty { directories[directories.count - 1].hasContent = true }
      if draft.plan.tree.entries[directory.number].action.isWritten {
        draft.count(directory.number)
      }
    } else {
      draft.plan.tree.update(directory.number) { $0.action = .leave }
    }
  }

  /// Returns the entry with its link target adjusted to this device.
  mutating func anchored(_ entry: TreeEntry, at path: ByteString) -> TreeEntry {
    guard case .symlink(let target) = entry.node, let anchors = selector.rules?.anchors else {
      return entry
    }
    switch anchors.target(of: target) {
    case .unchanged: return entry
    case .foreign:
      draft.plan.foreignLinks.append(PathRemark(path: path, remark: "it points to '\(target)'"))
      return entry
    case .own(let location):
      draft.plan.relinked.append(
        PathRemark(path: path, remark: "it pointed to '\(target)' and now points to '\(location)'"))
      var moved = entry
      moved.node = .symlink(target: location)
      return moved
    }
  }
}

extension Content {
  /// The content of an empty file.
  static let empty = Content(size: 0, level: 0, pieces: [])
}

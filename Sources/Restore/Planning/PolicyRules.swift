internal import ArchiveStore
internal import DeviceScan
internal import PolicyEngine
package import SystemIO

/// Additional actions of a restore into a device: recreating empty directories, generating the
/// layout's files, and adjusting links.
extension RestorePlanner {
  /// Adds entries to a directory that the snapshot does not have and that are restored nonetheless.
  mutating func addMade(in parent: Int, _ frame: RestoreSelector.Frame) {
    guard let rules = selector.rules, frame.isInside, plan.request.classes.isEmpty else { return }
    let path = plan.tree.path(parent, from: plan.place.shownDepth)
    for directory in rules.emptied[path] ?? [] { addEmptied(directory, in: parent) }
    if path.isEmpty {
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
      if present == .directory { return }
      return plan.blocked.append(
        PathRemark(path: name, remark: "the existing entry is not a directory"))
    }
    let above = plan.tree.entries[parent]
    let entry =
      directory.entry?.named(name)
      ?? TreeEntry(
        name: name, node: .directory(TreeReference(plan.snapshot.snapshot.tree.digest)),
        permissions: above.permissions & 0o777, owner: above.owner, group: above.group,
        modified: Host.now())
    _ = addMade(entry, in: parent)
  }

  /// Adds a generated file that its directory's owner owns. An existing entry is kept.
  private mutating func addGenerated(_ name: ByteString, in parent: Int, _ bytes: [UInt8]) {
    if present(name, in: parent) != nil { return }
    let above = plan.tree.entries[parent]
    let entry = TreeEntry(
      name: name, node: .file(Content.empty), permissions: 0o644, owner: above.owner,
      group: above.group, modified: Host.now())
    plan.tree.generate(addMade(entry, in: parent), bytes)
  }

  private mutating func addMade(_ entry: TreeEntry, in parent: Int) -> Int {
    let number = plan.tree.append(entry, named: entry.name, parent: parent, action: .create)
    count(number)
    directories[directories.count - 1].hasContent = true
    return number
  }

  /// Returns the kind of an existing entry in place of one to create, and excludes it from
  /// deletion.
  private mutating func present(_ name: ByteString, in parent: Int) -> FileKind? {
    directories[directories.count - 1].unseen?.remove(name)
    guard plan.tree.entries[parent].isMerged else { return nil }
    return (try? statusOfPresent(name, in: parent)) ?? nil
  }

  private mutating func statusOfPresent(
    _ name: ByteString, in parent: Int
  ) throws(SystemError) -> FileKind? {
    try present?.ascend(to: Int(plan.tree.entries[parent].depth))
    let found = try present?.withDirectory { directory throws(SystemError) in
      try directory.statusIfPresent(name)?.kind
    }
    return found ?? nil
  }

  /// Finishes a directory that is only above restored entries: it is created if something in it is
  /// restored.
  mutating func settle(_ directory: OpenDirectory) {
    if directory.hasContent {
      if !directories.isEmpty { directories[directories.count - 1].hasContent = true }
      if plan.tree.entries[directory.number].action.isWritten { count(directory.number) }
    } else {
      plan.tree.update(directory.number) { $0.action = .leave }
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
      plan.foreignLinks.append(PathRemark(path: path, remark: "it points to '\(target)'"))
      return entry
    case .own(let place):
      plan.relinked.append(
        PathRemark(path: path, remark: "it pointed to '\(target)' and now points to '\(place)'"))
      var moved = entry
      moved.node = .symlink(target: place)
      return moved
    }
  }

  /// Whether the existing entry is kept under another name: if no backup would hold it after it is
  /// replaced, and for a single file.
  package mutating func mustBeKept(_ name: ByteString) -> Bool {
    guard let rules = selector.rules, let directory = directories.last?.number else { return false }
    let above = plan.tree.path(directory, from: plan.place.shownDepth)
    if rules.isSelected(above.appending(name)) { return true }
    guard let index = selector.present?.index(of: above.appending(name)) else { return false }
    return rules.present?.entries[index].selection == .excluded
  }
}

extension Content {
  /// The content of an empty file.
  static let empty = Content(size: 0, level: 0, pieces: [])
}

/// The present entries that a restore may remove according to the policy.
struct PolicyRemovals: Sendable {
  /// The verdict on an entry that the snapshot does not have.
  enum Verdict { case stays, spare, removeParts, remove }

  private var facts = SpillableArray<Facts>()
  private var hasScan = false

  /// The facts about an entry of the scan.
  private struct Facts: OptionSet, Sendable, BitwiseCopyable {
    let rawValue: UInt8
    /// A topmost entry that the policy removes on restore.
    static let isRemoved = Facts(rawValue: 1)
    static let isAboveRemoved = Facts(rawValue: 2)
    /// An entry that the policy excludes from backups.
    static let isExcluded = Facts(rawValue: 4)
    static let isAboveExcluded = Facts(rawValue: 8)
  }

  /// Whether the policy removes no entry.
  private(set) var isEmpty = true

  init(_ request: RestoreRequest) {
    guard let rules = request.rules, let scan = rules.present else { return }
    hasScan = true
    facts = SpillableArray(repeating: [], count: scan.entries.count)
    let isWhole = rules.selection.isEmpty
    for (index, entry) in scan.entries.enumerated() where index > 0 {
      if isWhole, entry.verdicts.keep.restore == .remove {
        isEmpty = false
        note(index, .isRemoved, above: .isAboveRemoved, in: scan)
      }
      if entry.selection == .excluded, !request.deletesExcluded {
        note(index, .isExcluded, above: .isAboveExcluded, in: scan)
      }
    }
  }

  /// Records a fact about an entry, and another one about the directories above it.
  private mutating func note(
    _ index: Int, _ fact: Facts, above other: Facts, in scan: ContainerScan
  ) {
    facts[index].formUnion(fact)
    var at = index
    while at > 0 {
      at = Int(scan.entries[at].parent)
      if facts[at].contains(other) { return }
      facts[at].formUnion(other)
    }
  }

  /// Returns the verdict on an entry, by its index in the scan. `isAsked` is whether entries that
  /// the snapshot does not have are to be removed.
  func verdict(on index: Int?, isAsked: Bool) -> Verdict {
    // An entry that was created after the scan has no verdict.
    guard let index else { return isAsked && !hasScan ? .remove : .stays }
    let found = hasScan ? facts[index] : []
    if found.contains(.isRemoved) { return .remove }
    guard isAsked else { return found.contains(.isAboveRemoved) ? .removeParts : .stays }
    if found.contains(.isExcluded), !found.contains(.isAboveRemoved) { return .spare }
    return found.isDisjoint(with: [.isAboveExcluded, .isAboveRemoved]) ? .remove : .removeParts
  }
}

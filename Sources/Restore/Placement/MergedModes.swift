internal import SystemIO

/// The modes of existing directories while a restore puts entries into them.
///
/// Before the first entry, each directory loses the access of the group and of others that its
/// stored mode does not give: an entry may be readable for everyone who can reach it. A directory
/// that its owner may not write to gets its owner's bits (0300), as new directories have them.
///
/// After a failure, a directory gets its previous mode again. Only if entries are in it or below it
/// the access of the group and of others stays withdrawn, since these entries may rely on that.
final class MergedModes {
  private struct Change {
    let previous: UInt16
    /// The mode without the bits that were added for the owner.
    let closed: UInt16
    /// The mode while entries are put into the directory.
    let working: UInt16
  }

  /// The bits that the owner of a directory needs to create and remove entries.
  private static let writing: UInt16 = 0o300

  private let root: Directory
  private var changes: [Int: Change] = [:]
  /// The directories with restored entries in them or below them.
  private var filled: Set<Int> = []

  /// Begins in the directory that the restore works in.
  init(in root: borrowing Directory) throws(SystemError) { self.root = try root.duplicate() }

  /// Makes that directory writable, if a restore that merges into it (`isMerged`) needs this to
  /// create its staging directory.
  func openRoot(isMerged: Bool) {
    guard isMerged, let status = try? root.status() else { return }
    let previous = status.permissions
    if Self.mayNotChange(root, previous) { open(0, root, previous: previous, closed: previous) }
  }

  /// Changes the modes of all directories that entries are put into, or deleted from.
  func begin(_ plan: RestorePlan, at target: inout RestoreRun.Cursor) {
    let (needed, changed) = (plan.tree.directoriesWithWork(), plan.changedDirectories)
    for number in plan.tree.entries.indices {
      let entry = plan.tree.entries[number]
      guard entry.isMerged, needed[number] || changed.contains(number) else { continue }
      // A failure is reported when an entry is put there, or when the stored mode is set.
      try? target.within(number) { directory throws(SystemError) in
        let present = try directory.status().permissions
        let previous = changes[number]?.previous ?? present
        let isClosed = needed[number] && Placement.isFinished(entry)
        let closed = isClosed ? previous & (entry.permissions | ~0o077) : previous
        let opens =
          changes[number] != nil || changed.contains(number) && Self.mayNotChange(directory, closed)
        if opens {
          open(number, directory, previous: previous, closed: closed)
        } else if closed != present {
          try directory.setPermissions(closed)
          changes[number] = Change(previous: previous, closed: closed, working: closed)
        }
      }
    }
  }

  /// Whether only a missing bit of its owner prevents this user from changing the directory.
  private static func mayNotChange(_ directory: borrowing Directory, _ mode: UInt16) -> Bool {
    mode & writing != writing && !directory.canBeChanged
  }

  /// Only the owner can add the bits. For other users, creating an entry fails as before.
  private func open(
    _ number: Int, _ directory: borrowing Directory, previous: UInt16, closed: UInt16
  ) {
    let working = closed | Self.writing
    guard (try? directory.setPermissions(working)) != nil else { return }
    changes[number] = Change(previous: previous, closed: closed, working: working)
  }

  /// Records that an entry was put into a directory.
  func didFill(_ directory: Int, of tree: PlannedTree) {
    var number = directory
    while filled.insert(number).inserted, number > 0 { number = Int(tree.entries[number].parent) }
  }

  /// Sets the modes of directories whose stored modes are not set, once all entries are in place.
  func finish(_ tree: PlannedTree, at target: inout RestoreRun.Cursor) {
    reset(at: &target) { Placement.isFinished(tree.entries[$0]) ? nil : $1.previous }
  }

  /// Sets the modes after a failure.
  func revert(_ tree: PlannedTree) {
    if changes.isEmpty { return }
    guard let top = try? root.duplicate() else { return }
    var target = RestoreRun.Cursor(tree, root: top)
    reset(at: &target) { filled.contains($0) ? $1.closed : $1.previous }
  }

  /// Sets modes, deepest first. A directory whose mode has changed again is left unchanged.
  private func reset(
    at target: inout RestoreRun.Cursor, to mode: (Int, Change) -> UInt16?
  ) {
    for (number, change) in changes.sorted(by: { $0.key > $1.key }) {
      guard let mode = mode(number, change), mode != change.working else { continue }
      try? target.within(number) { directory throws(SystemError) in
        if try directory.status().permissions == change.working {
          try directory.setPermissions(mode)
        }
      }
    }
    changes = [:]
  }
}

extension RestorePlan {
  /// The numbers of the existing directories that entries are put into, or deleted from.
  fileprivate var changedDirectories: Set<Int> {
    var found = Set(databases.map(\.directory))
    for number in tree.topmostWritten { found.insert(Int(tree.entries[number].parent)) }
    for deletion in removals { found.insert(deletion.directory) }
    return found
  }
}

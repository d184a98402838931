internal import ArchiveStore
package import DeviceTransaction
package import SystemIO

/// Moves staged entries into the target: new directories as a whole, other entries file by file,
/// each by one rename. So at any moment each entry of the target is in its previous or its stored
/// state.
package struct Placement: ~Copyable {
  let run: RestoreRun
  let plan: RestorePlan
  /// The trash for replaced entries; nil in a plain directory, where they are deleted.
  let trash: TrashDirectory?
  /// The note of a directory whose permissions are opened for its move; nil without a journal.
  let note: OpenedNote?
  private var staged: TreeCursor
  var target: TreeCursor
  var placed = 0
  /// The numbers of the databases in the plan that are kept unchanged.
  var staying: Set<Int> = []
  /// Whether a database is in neither its previous nor its stored state.
  var isUnstable = false

  package init(
    _ plan: RestorePlan, from run: RestoreRun, keepingIn trash: TrashDirectory?, note: OpenedNote?
  ) throws(SystemError) {
    let staged = try run.cursor()
    let target = try run.targetCursor()
    self.plan = plan
    self.run = run
    self.trash = trash
    self.note = note
    self.staged = staged
    self.target = target
  }

  /// Moves all entries into the target: databases first, then the entries of each directory in the
  /// order of their names.
  mutating func place(isStopping: () -> Bool) throws {
    try placeDatabases(isStopping: isStopping)
    let databaseMembers = plan.databaseMembers
    var number = 1
    while number < plan.tree.entries.count {
      let entry = plan.tree.entries[number]
      guard entry.action.isWritten, !entry.isMerged else {
        number += 1
        continue
      }
      if !run.findings.isUnmade(number), !databaseMembers.contains(number) {
        if isStopping() { throw interruption() }
        do throws(SystemError) {
          try place(number)
          placed += 1
        } catch {
          // A new target is placed by one rename: without it, nothing is restored.
          if plan.place.name != nil { throw OperationError(error) }
          try run.note(number, error)
          for below in (number + 1)..<max(plan.tree.end(of: number), number + 1) {
            run.findings.skip(below)
          }
        }
      }
      number = plan.tree.end(of: number)
    }
  }

  /// Returns the error for an interruption, with the progress so far.
  func interruption() -> OperationError {
    if plan.place.name != nil {
      return OperationError(.interrupted, "interrupted: the target is unchanged")
    }
    let all = plan.tree.entries.count { $0.action.isWritten && !$0.isMerged }
    return OperationError(
      .interrupted,
      "interrupted: \(placed) of at most \(all) entries are restored, each of them completely",
      hint: "run the same command again to restore the others")
  }

  private mutating func place(_ number: Int) throws(SystemError) {
    let (entry, name) = (plan.tree.entries[number], plan.tree.name(number))
    let (tree, trash, note) = (plan.tree, trash, note)
    try staged.withDirectory(of: number) { from throws(SystemError) in
      try target.withDirectory(of: number) { to throws(SystemError) in
        do throws(SystemError) {
          try Self.move(number, of: tree, from: from, to: to, keepingIn: trash)
        } catch {
          guard error.isRefused, entry.kind == .directory, entry.permissions & 0o200 == 0 else {
            throw error
          }
          // The existing entry has been replaced by now, or this call replaces it.
          try from.whileOpen(name, to: to, as: name, note: note) { () throws(SystemError) in
            try Self.move(number, of: tree, from: from, to: to, keepingIn: trash)
          }
        }
      }
    }
  }

  private static func move(
    _ number: Int, of tree: PlannedTree, from: borrowing Directory, to: borrowing Directory,
    keepingIn trash: TrashDirectory?
  ) throws(SystemError) {
    let (entry, name) = (tree.entries[number], tree.name(number))
    if entry.isMovedAside {
      try to.linkAside(name, as: tree.asideName(number))
    } else if entry.action == .replace, let trash {
      let directory = tree.path(Int(entry.parent), from: 0).components
      try trash.preserve(name, of: to, at: directory, leaving: entry.changesKind)
    }
    switch (entry.action, entry.changesKind) {
    case (.replace, true):
      if trash == nil { try from.swap(name, in: to) } else { try from.add(name, to: to) }
    case (.replace, false): try from.rename(name, to: name, in: to)
    default: try from.add(name, to: to)
    }
  }
}

package import DeviceTransaction
package import SystemIO

/// Moves staged entries into the target: new directories as a whole, other entries file by file,
/// each by one rename. So at any moment each entry of the target is in its previous or its stored
/// state; only a database leaves its path while its log is exchanged (`PlacementSteps`).
package struct Placement: ~Copyable {
  let run: RestoreRun
  let plan: RestorePlan
  /// The trash for replaced entries; nil in a plain directory, where they are deleted.
  let trash: TrashDirectory?
  /// The note of a directory whose permissions are opened for its move; nil without a journal.
  let note: OpenedNote?
  private var staged: RestoreRun.Cursor
  var target: RestoreRun.Cursor
  /// The modes that directories have while entries are put into them; nil if they stay unchanged.
  var modes: MergedModes?
  var placed = 0
  /// The numbers of the databases in the plan that are kept unchanged.
  var staying: Set<Int> = []
  /// Whether a database is in neither its previous nor its stored state.
  var isUnstable = false
  /// The existing entries that got another name beside the restored ones.
  private(set) var setAside: [SetAsideEntry] = []

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
  mutating func placeAll(isStopping: () -> Bool) throws {
    try placeDatabases(isStopping: isStopping)
    let (tree, databaseMembers) = (plan.tree, plan.databaseMembers)
    for number in tree.topmostWritten
    where !run.findings.isUnmade(number) && !databaseMembers.contains(number) {
      if isStopping() { throw interruption() }
      var reason: String?
      do throws(SystemError) {
        reason = try reasonToKeep(number)
        if reason == nil {
          try place(number)
          placed += 1
          modes?.didFill(Int(tree.entries[number].parent), of: tree)
        }
      } catch {
        // A new target is placed by one rename: without it, nothing is restored.
        if plan.target.name != nil { throw OperationError(error) }
        try run.record(number, error)
        run.skip(below: number)
      }
      if let reason { try keep(number, reason) }
    }
  }

  /// Returns the error for an interruption, with the progress so far.
  func interruption() -> OperationError {
    if plan.target.name != nil {
      return OperationError(.interrupted, "the restore was interrupted: the target is unchanged")
    }
    let all = plan.tree.entries.count { $0.action.isWritten && !$0.isMerged }
    return OperationError(
      .interrupted,
      "the restore was interrupted: \(placed) of at most \(all) entries are restored, each of them "
        + "completely",
      hint: "run the same command again to restore the others")
  }

  /// An existing entry that a move kept under another name in the same directory, or in the trash.
  private struct KeptEntry: Hashable {
    let name: ByteString
    let isDirectory: Bool
    var isInTrash = false
  }

  private mutating func place(_ number: Int) throws(SystemError) {
    var kept: [KeptEntry] = []
    do throws(SystemError) {
      try place(number, kept: &kept)
    } catch {
      record(withoutSecondNames(kept, of: number), besides: number)
      throw error
    }
    record(kept, besides: number)
  }

  private mutating func place(_ number: Int, kept: inout [KeptEntry]) throws(SystemError) {
    let (entry, name) = (plan.tree.entries[number], plan.tree.name(number))
    let (tree, trash, note) = (plan.tree, trash, note)
    try staged.withDirectory(of: number) { from throws(SystemError) in
      try target.withDirectory(of: number) { to throws(SystemError) in
        do throws(SystemError) {
          try Self.move(
            number, of: tree, from: from, to: to, keepingIn: trash, note, kept: &kept)
        } catch {
          guard error.isRefused, entry.kind == .directory, entry.permissions & 0o200 == 0 else {
            throw error
          }
          // The existing entry has already been replaced, or this call replaces it.
          try from.whileOpen(name, to: to, as: name, note: note) { () throws(SystemError) in
            try Self.move(
              number, of: tree, from: from, to: to, keepingIn: trash, note, kept: &kept)
          }
        }
      }
    }
  }

  /// After the restored entry could not be put in place: removes the second names of existing
  /// entries that still have their own, and moves back the last one if its name is free. Returns
  /// the others beside it, which have no other name.
  private mutating func withoutSecondNames(_ kept: [KeptEntry], of number: Int) -> [KeptEntry] {
    let name = plan.tree.name(number)
    var left: [KeptEntry] = []
    for entry in kept.reversed() where entry.isInTrash {
      let (trash, path) = (trash, directoryPath(of: number).components)
      try? target.withDirectory(of: number) { directory throws(SystemError) in
        try trash?.release(entry.name, of: name, in: directory, at: path)
      }
    }
    for entry in kept.reversed() where !entry.isInTrash {
      let note = note
      let isGone = try? target.withDirectory(of: number) { directory throws(SystemError) in
        guard let second = try directory.statusIfPresent(entry.name) else { return true }
        guard let present = try directory.statusIfPresent(name) else {
          try directory.addOpened(entry.name, to: directory, as: name, note)
          return true
        }
        guard present.identity == second.identity else { return false }
        try directory.remove(entry.name)
        return true
      }
      if isGone != true { left.append(entry) }
    }
    return left.reversed()
  }

  /// Records the existing entries that were kept beside an entry.
  private mutating func record(_ kept: [KeptEntry], besides number: Int) {
    let directory = directoryPath(of: number)
    for entry in kept where !entry.isInTrash {
      setAside.append(
        SetAsideEntry(
          path: plan.shownPath(number),
          keptPath: plan.target.directory.appending(directory).appending(entry.name),
          isDirectory: entry.isDirectory))
    }
  }

  /// The path of an entry's directory below the one that the restore works in.
  private func directoryPath(of number: Int) -> ByteString {
    plan.tree.path(Int(plan.tree.entries[number].parent), from: 0)
  }

  private static func move(
    _ number: Int, of tree: PlannedTree, from: borrowing Directory, to: borrowing Directory,
    keepingIn trash: TrashDirectory?, _ note: OpenedNote?, kept: inout [KeptEntry]
  ) throws(SystemError) {
    let (entry, name) = (tree.entries[number], tree.name(number))
    var isThere = entry.action == .replace
    if entry.isMovedAside {
      let aside = tree.asideName(number)
      isThere = try to.preservePresent(name, for: entry.kind) { leaving throws(SystemError) in
        guard let used = try to.preserve(name, in: to, as: aside, leaving: leaving, note) else {
          return
        }
        let keptEntry = KeptEntry(
          name: used, isDirectory: leaving != (entry.kind == .directory))
        if !kept.contains(keptEntry) { kept.append(keptEntry) }
      }
    } else if isThere, let trash {
      let directory = tree.path(Int(entry.parent), from: 0).components
      isThere = try to.preservePresent(name, for: entry.kind) { leaving throws(SystemError) in
        guard let used = try trash.preserve(name, of: to, at: directory, leaving: leaving) else {
          return
        }
        kept.append(
          KeptEntry(
            name: used, isDirectory: leaving != (entry.kind == .directory), isInTrash: true))
      }
    } else if entry.changesKind {
      return try from.swap(name, in: to)
    }
    if isThere {
      try from.rename(name, to: name, in: to)
    } else {
      try from.add(name, to: to)
    }
  }

  // MARK: - Databases

  /// Puts the databases in merged directories in place, each completely or not at all. The
  /// journal's steps are used even without a journal, so that a database that cannot be placed
  /// completely is rolled back.
  mutating func placeDatabases(isStopping: () -> Bool) throws {
    if plan.databases.isEmpty { return }
    let keeping: PlacementSteps.Keeping = trash != nil ? .trash : note != nil ? .nothing : .aside
    let steps = PlacementSteps(plan, without: run.findings, keeping: keeping)
    let runner = StepRunner(
      try run.roots(keptIn: trash?.path), note, isFresh: true)
    for (number, database) in plan.databases.enumerated() {
      if run.findings.isBroken(database) {
        staying.insert(number)
        continue
      }
      if isStopping() { throw interruption() }
      if keepsChanged(database) {
        staying.insert(number)
        continue
      }
      let moves = steps.moves(of: number)
      do throws(StepRunner.Failure) {
        _ = try runner.applyAll(moves.map(\.step))
        placed += moves.count { $0.step.source != nil }
        modes?.didFill(database.directory, of: plan.tree)
      } catch {
        if error.remaining != nil { modes?.didFill(database.directory, of: plan.tree) }
        staying.insert(number)
        try report(error, of: database, moves)
        continue
      }
      noteSetAside(moves, of: database, by: runner)
      // Only files that this run kept: an unrelated file may have such a name.
      for name in moves.filter(\.isTemporary).compactMap({ runner.keptNames[$0.step] }) {
        remove(name, of: database)
      }
    }
  }

  /// Records the files of another state that a restored database has beside it.
  private mutating func noteSetAside(
    _ moves: [PlacementSteps.Move], of database: RestorePlan.Database, by runner: StepRunner
  ) {
    for move in moves where !move.isTemporary && move.step.kept == PlacementSteps.Root.target {
      guard let kept = runner.keptNames[move.step] else { continue }
      let child = RestorePlan.Child(directory: database.directory, name: move.step.name)
      let directory = plan.target.directory.appending(plan.tree.path(database.directory, from: 0))
      setAside.append(
        SetAsideEntry(path: plan.shownPath(child), keptPath: directory.appending(kept)))
    }
  }

  /// Removes a replaced file after its database is in place.
  private mutating func remove(_ name: ByteString, of database: RestorePlan.Database) {
    do throws(SystemError) {
      try target.within(database.directory) { directory throws(SystemError) in
        try directory.removeTree(name)
      }
    } catch {
      if error.isMissing { return }
      run.findings.remark(
        database.directory, "cannot remove the replaced file '\(name)': \(error.reason)")
    }
  }

  /// Records why a database was not restored.
  ///
  /// - Throws: `OperationError` if the database could not be rolled back; nothing else is tried
  ///   then.
  private mutating func report(
    _ failure: StepRunner.Failure, of database: RestorePlan.Database, _ moves: [PlacementSteps.Move]
  ) throws {
    let name = moves[failure.step].step.name
    if let (step, error) = failure.remaining {
      isUnstable = true
      throw OperationError(
        .failed, code: .rollbackFailed,
        "cannot restore '\(name)' of '\(database.name)': \(failure.error.reason); "
          + "and cannot roll back '\(step.name)': \(error.reason)",
        hint: note == nil
          ? "the previous files are next to it; their names contain '\(plan.tree.asideSuffix)'"
          : "'sandboxctl recover' finishes it or rolls it back")
    }
    if let number = moves[failure.step].entry {
      try run.record(number, failure.error)
    } else {
      if run.endsEverything(failure.error) { throw OperationError(failure.error) }
      run.findings.remark(
        database.directory, "cannot move '\(name)' away: \(failure.error.reason)")
    }
    run.findings.fail(database)
  }

  // MARK: - After all entries are in place

  /// Removes entries that the snapshot does not have. Returns the totals of the removed and the
  /// replaced entries.
  mutating func delete(isStopping: () -> Bool) throws -> RestoreTotals {
    var gone = plan.deletionsOfOrphans(besides: staying).gone
    for deletion in plan.deletions {
      if let replacement = deletion.replacement, !run.findings.isUnmade(replacement) {
        gone.add(deletion.totals)
      }
    }
    // A database that cannot be removed keeps its log, which sorts after it.
    var kept: Set<RestorePlan.Child> = []
    for deletion in plan.removals {
      if let database = deletion.name.databaseOfCompanion,
        kept.contains(RestorePlan.Child(directory: deletion.directory, name: database))
      {
        run.findings.remark(
          deletion.directory, "'\(deletion.name)' is kept: its '\(database)' cannot be removed"
        )
        continue
      }
      if isStopping() {
        throw OperationError(
          .interrupted,
          "the restore was interrupted: all entries are restored, but some deletions remain",
          hint: "run the same command again to continue")
      }
      do throws(SystemError) {
        let (trash, path) = (trash, plan.tree.path(deletion.directory, from: 0).components)
        try target.within(deletion.directory) { directory throws(SystemError) in
          guard let trash else { return try directory.removeTree(deletion.name) }
          try trash.preserve(deletion.name, of: directory, at: path, leaving: true)
        }
        gone.add(deletion.totals)
      } catch {
        if error.isMissing { continue }
        kept.insert(deletion.child)
        run.findings.remark(deletion.directory, "cannot remove '\(deletion.name)': \(error.reason)")
      }
    }
    return gone
  }
}

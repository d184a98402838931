package import SystemIO

/// Applies the remaining steps of an operation through directory handles that are opened from the
/// roots: all steps or, after an interruption, those that were not applied.
package final class StepRunner {
  private let roots: [JournalRecord.Root]
  private var cursors: [Int: Cursor] = [:]

  /// The cursor below one root, shared by the steps.
  final class Cursor {
    private var cursor: DirectoryCursor

    init(root: consuming Directory) { cursor = DirectoryCursor(root: root) }

    func withDirectory<Result: ~Copyable>(
      _ path: [ByteString], making: Bool = false,
      _ body: (borrowing Directory) throws(SystemError) -> Result
    ) throws(SystemError) -> Result {
      try cursor.move(to: path, making: making)
      return try cursor.withDirectory(body)
    }
  }

  /// The note that records a directory opened for its move.
  private let note: OpenedNote?
  /// The names at which this runner kept replaced entries: for steps of items, and if a name
  /// differs from the step's.
  package private(set) var keptNames: [JournalStep: ByteString] = [:]

  /// Whether no process has applied any of the steps before.
  private let isFresh: Bool

  package init(_ roots: [JournalRecord.Root], _ note: OpenedNote? = nil, isFresh: Bool = false) {
    (self.roots, self.note, self.isFresh) = (roots, note, isFresh)
  }

  /// A step of an item that could not be applied. The steps before it were rolled back.
  package struct Failure: Error {
    /// The index of the step in the item.
    package let step: Int
    package let error: SystemError
    /// The step that could not be rolled back and the reason, or nil if all were rolled back.
    package let remaining: (step: JournalStep, error: SystemError)?
  }

  /// Applies a step, unless it was applied before. Returns whether it had to be applied.
  package func apply(_ step: JournalStep) throws(SystemError) -> Bool {
    let (name, above) = (step.name, step.directory)
    guard let source = step.source else {
      return try within(step.root, at: above) { parent throws(SystemError) in
        guard try parent.statusIfPresent(name) != nil else { return false }
        try preserve(step, parent)
        return true
      } ?? false
    }
    guard let staged = try staged(step, source) else { return false }
    let target = try cursor(step.root)
    try target.withDirectory(above) { parent throws(SystemError) in
      _ = try parent.preservePresent(step.name, for: staged.kind) { leaving throws(SystemError) in
        try preserve(step, parent, leaving: leaving)
      }
      try fill(step, from: source, in: parent)
    }
    return true
  }

  /// Whether the new entry of a step is still staged.
  private func isStaged(_ step: JournalStep) throws(SystemError) -> Bool {
    guard let source = step.source else { return false }
    return try staged(step, source) != nil
  }

  private func staged(_ step: JournalStep, _ source: Int) throws(SystemError) -> FileStatus? {
    try within(source, at: step.directory) { from throws(SystemError) in
      try from.statusIfPresent(step.sourceName ?? step.name)
    } ?? nil
  }

  /// Whether the entry that a step replaced is kept.
  private func isKept(_ step: JournalStep) throws(SystemError) -> Bool {
    guard let kept = step.kept else { return false }
    let status = try within(kept, at: step.directory) { parent throws(SystemError) in
      try parent.statusIfPresent(step.keptName ?? step.name)
    }
    return (status ?? nil) != nil
  }

  private func fill(
    _ step: JournalStep, from source: Int, in parent: borrowing Directory
  ) throws(SystemError) {
    // It is renamed within the same directory, which is open already.
    if source == step.root { return try move(step, from: parent, to: parent) }
    try cursor(source).withDirectory(step.directory) { from throws(SystemError) in
      try move(step, from: from, to: parent)
    }
  }

  private func move(
    _ step: JournalStep, from: borrowing Directory, to parent: borrowing Directory
  ) throws(SystemError) {
    let (name, staged) = (step.name, step.sourceName ?? step.name)
    if let present = try parent.statusIfPresent(name), present.kind != .directory {
      return try from.rename(staged, to: name, in: parent)
    }
    try from.addOpened(staged, to: parent, as: name, note)
  }

  /// Preserves the present entry.
  private func preserve(
    _ step: JournalStep, _ parent: borrowing Directory, leaving: Bool = true
  ) throws(SystemError) {
    guard let kept = step.kept else {
      throw SystemError.replaced(parent.path.appending(step.name))
    }
    let (name, keptName) = (step.name, step.keptName ?? step.name)
    let used =
      if kept == step.root {
        try parent.preserve(name, in: parent, as: keptName, leaving: leaving, note)
      } else {
        try cursor(kept).withDirectory(step.directory, making: true) {
          directory throws(SystemError) in
          try parent.preserve(name, in: directory, as: keptName, leaving: leaving, note)
        }
      }
    if let used, used != keptName || step.item != nil { keptNames[step] = used }
  }

  /// Calls `body` with a directory below a root, or returns nil if the directory no longer exists.
  private func within<Result>(
    _ root: Int, at path: [ByteString],
    _ body: (borrowing Directory) throws(SystemError) -> Result
  ) throws(SystemError) -> Result? {
    do throws(SystemError) {
      return try cursor(root).withDirectory(path, body)
    } catch {
      if error.isMissing { return nil }
      throw error
    }
  }

  func cursor(_ root: Int) throws(SystemError) -> Cursor {
    if let cursor = cursors[root] { return cursor }
    let (path, inode) = (roots[root].path, roots[root].inode)
    let directory =
      inode == nil
      ? try Directory.make(resolved: path, permissions: 0o700) : try Directory.open(resolved: path)
    if let inode, try directory.status().identity.inode != inode {
      throw SystemError.replaced(path)
    }
    let cursor = Cursor(root: directory)
    cursors[root] = cursor
    return cursor
  }
}

// MARK: - Rolling back

/// Rolling back: new entries return to their staging directory, and the replaced entries to their
/// paths. Like the forward direction, it can be repeated after an interruption at any point.
extension StepRunner {
  /// Rolls back a step as far as it was applied. Returns whether anything had to be done. The steps
  /// after it must have been rolled back before.
  func rollBack(_ step: JournalStep) throws(SystemError) -> Bool {
    let isReturned = try unapply(step)
    return try restoreKept(step) || isReturned
  }

  /// Moves the new entry back to its staging directory, unless it is still there.
  private func unapply(_ step: JournalStep) throws(SystemError) -> Bool {
    guard let source = step.source, try !isStaged(step) else { return false }
    return try within(step.root, at: step.directory) { parent throws(SystemError) in
      guard try parent.statusIfPresent(step.name) != nil else { return false }
      let name = step.sourceName ?? step.name
      if source == step.root {
        try parent.addOpened(step.name, to: parent, as: name, note)
      } else {
        try cursor(source).withDirectory(step.directory, making: true) { from throws(SystemError) in
          try parent.addOpened(step.name, to: from, as: name, note)
        }
      }
      return true
    } ?? false
  }

  /// Restores the replaced entry. An entry that has been created in its place since then is kept in
  /// exchange.
  private func restoreKept(_ step: JournalStep) throws(SystemError) -> Bool {
    guard let kept = step.kept else { return false }
    let used = keptNames[step]
    // If this runner kept nothing, an entry of that name belongs to another operation.
    if isFresh, step.item != nil, used == nil { return false }
    let name = used ?? step.keptName ?? step.name
    if kept == step.root {
      return try within(kept, at: step.directory) { parent throws(SystemError) in
        try restore(name, from: parent, to: parent, as: step.name)
      } ?? false
    }
    return try within(kept, at: step.directory) { trash throws(SystemError) in
      guard try trash.statusIfPresent(name) != nil else { return false }
      return try cursor(step.root).withDirectory(step.directory) { parent throws(SystemError) in
        try restore(name, from: trash, to: parent, as: step.name)
      }
    } ?? false
  }

  private func restore(
    _ kept: ByteString, from trash: borrowing Directory, to parent: borrowing Directory,
    as name: ByteString
  ) throws(SystemError) -> Bool {
    guard let old = try trash.statusIfPresent(kept) else { return false }
    if let present = try parent.statusIfPresent(name) {
      // The entry only has a second name: the step was not applied further.
      if present.identity == old.identity {
        try trash.remove(kept)
        return true
      }
      try parent.preserve(name, in: trash, as: kept, leaving: true, note)
    }
    try trash.addOpened(kept, to: parent, as: name, note)
    return true
  }
}

// MARK: - Items

/// Steps of one item: all of them are applied, or none.
extension StepRunner {
  /// Applies the steps of an item. If one cannot be applied, it and the steps before it are rolled
  /// back. Returns the number of steps that had to be applied.
  package func applyAll(
    _ item: some BidirectionalCollection<JournalStep>
  ) throws(Failure) -> Int {
    var applied = 0
    let begun = isFresh ? 0 : try begun(item)
    for (number, step) in item.enumerated() where number >= begun {
      // A step without a staged entry has placed nothing that could be moved back.
      var isBegun = true
      do throws(SystemError) {
        isBegun = try apply(step)
        if isBegun { applied += 1 }
        if !isBegun, isFresh, step.source != nil { throw SystemError.replaced(step.path) }
      } catch {
        let left = rollBackAll(item.prefix(isBegun ? number + 1 : number))
        throw Failure(step: number, error: error, remaining: left)
      }
    }
    return applied
  }

  /// Returns the number of steps of an item that were applied before an interruption: all up to the
  /// last one whose entry is no longer staged or, in an item that adds nothing, up to the last one
  /// whose present entry was moved away. Entries at these paths have been created since then and
  /// stay.
  private func begun(
    _ item: some BidirectionalCollection<JournalStep>
  ) throws(Failure) -> Int {
    var begun = 0
    let hasSources = item.contains { $0.source != nil }
    for (number, step) in item.enumerated() where !hasSources || step.source != nil {
      do throws(SystemError) {
        let isApplied = try hasSources ? !isStaged(step) : isKept(step)
        if isApplied { begun = number + 1 }
      } catch {
        throw Failure(step: number, error: error, remaining: nil)
      }
    }
    return begun
  }

  /// Rolls back steps, last first. Returns the step that cannot be rolled back, or nil. The steps
  /// before it stay applied, so that the recovery can continue in either direction.
  private func rollBackAll(
    _ steps: some BidirectionalCollection<JournalStep>
  ) -> (step: JournalStep, error: SystemError)? {
    for step in steps.reversed() {
      do throws(SystemError) { _ = try rollBack(step) } catch { return (step, error) }
    }
    return nil
  }
}

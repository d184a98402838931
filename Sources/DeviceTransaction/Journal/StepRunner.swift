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
  let isFresh: Bool
  /// The time since which other programs may have written to files of items: the beginning of an
  /// interrupted operation. Nil if their times are not examined.
  let interruptedSince: Timestamp?

  /// Creates a runner.
  package init(
    _ roots: [JournalRecord.Root], _ note: OpenedNote? = nil, isFresh: Bool = false,
    interruptedSince: Timestamp? = nil
  ) {
    (self.roots, self.note, self.isFresh) = (roots, note, isFresh)
    self.interruptedSince = interruptedSince
  }

  /// A step of an item that could not be applied. The steps before it were rolled back.
  package struct Failure: Error {
    /// The index of the step in the item.
    package let step: Int
    package let error: SystemError
    /// The step that could not be rolled back and the reason, or nil if all were rolled back.
    package let remaining: (step: JournalStep, error: SystemError)?
    /// Whether another program has written to files of the item since an interruption.
    var isChanged = false
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
  func isStaged(_ step: JournalStep) throws(SystemError) -> Bool {
    guard let source = step.source else { return false }
    return try staged(step, source) != nil
  }

  func staged(_ step: JournalStep, _ source: Int) throws(SystemError) -> FileStatus? {
    try within(source, at: step.directory) { from throws(SystemError) in
      try from.statusIfPresent(step.sourceName ?? step.name)
    } ?? nil
  }

  /// Returns the entry at the path of a step, or nil if there is none.
  func present(_ step: JournalStep) throws(SystemError) -> FileStatus? {
    try within(step.root, at: step.directory) { parent throws(SystemError) in
      try parent.statusIfPresent(step.name)
    } ?? nil
  }

  /// Whether the entry that a step replaced is kept. An entry that only has a second name there is
  /// still at its path.
  func isKept(_ step: JournalStep) throws(SystemError) -> Bool {
    guard let kept = step.kept else { return false }
    let status = try within(kept, at: step.directory) { parent throws(SystemError) in
      try parent.statusIfPresent(step.keptName ?? step.name)
    }
    guard let status = status ?? nil else { return false }
    return try present(step)?.identity != status.identity
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
  func preserve(
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

  /// Gives the present entry of a step its second name where it will be kept, if it can have one.
  /// The step finds and uses that name.
  func addSecondName(_ step: JournalStep) throws(SystemError) {
    guard let kept = step.kept else { return }
    let keptName = step.keptName ?? step.name
    let used = try within(step.root, at: step.directory) { parent throws(SystemError) in
      if kept == step.root {
        return try parent.addSecondName(of: step.name, in: parent, as: keptName)
      }
      guard try parent.statusIfPresent(step.name) != nil else { return nil }
      return try cursor(kept).withDirectory(step.directory, making: true) {
        directory throws(SystemError) in
        try parent.addSecondName(of: step.name, in: directory, as: keptName)
      }
    }
    if let used = used ?? nil { keptNames[step] = used }
  }

  /// Calls `body` with a directory below a root, or returns nil if the directory no longer exists.
  func within<Result>(
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
  func restoreKept(_ step: JournalStep) throws(SystemError) -> Bool {
    guard let kept = step.kept, let name = nameOfKept(step) else { return false }
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

  /// Removes the second name of an entry that is still at its path.
  func removeSecondName(_ step: JournalStep) throws(SystemError) {
    guard let kept = step.kept, let name = nameOfKept(step), let present = try present(step) else {
      return
    }
    _ = try within(kept, at: step.directory) { trash throws(SystemError) in
      guard try trash.statusIfPresent(name)?.identity == present.identity else { return }
      try trash.remove(name)
    }
  }

  /// Returns the name under which the entry of a step is kept, if it is; nil if an entry of the
  /// step's name there belongs to another operation, since this runner kept nothing.
  private func nameOfKept(_ step: JournalStep) -> ByteString? {
    if let used = keptNames[step] { return used }
    return isFresh && step.item != nil ? nil : step.keptName ?? step.name
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

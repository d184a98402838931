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
      try cursor.go(to: path, making: making)
      return try cursor.withDirectory(body)
    }
  }

  /// The note that records a directory opened for its move.
  let note: OpenedNote?
  /// The names at which this runner kept replaced entries: for steps of units, and if a name
  /// differs from the step's.
  package private(set) var keptNames: [JournalStep: ByteString] = [:]

  /// Whether no process has applied any of the steps before.
  let isFresh: Bool

  package init(_ roots: [JournalRecord.Root], _ note: OpenedNote? = nil, isFresh: Bool = false) {
    (self.roots, self.note, self.isFresh) = (roots, note, isFresh)
  }

  /// Applies a step, unless it was applied before. Returns whether it had to be applied.
  package func take(_ step: JournalStep) throws(SystemError) -> Bool {
    let (name, above) = (step.name, step.directory)
    guard let source = step.source else {
      return try within(step.root, at: above) { place throws(SystemError) in
        guard try place.statusIfPresent(name) != nil else { return false }
        try keep(step, place)
        return true
      } ?? false
    }
    guard let staged = try staged(step, source) else { return false }
    let target = try cursor(step.root)
    try target.withDirectory(above) { place throws(SystemError) in
      try keepPresent(step, place, for: staged.kind)
      try fill(step, from: source, in: place)
    }
    return true
  }

  /// Keeps the present entry. Repeats this if another entry has appeared since, which the rename
  /// that follows would replace.
  private func keepPresent(
    _ step: JournalStep, _ place: borrowing Directory, for kind: FileKind
  ) throws(SystemError) {
    var kept: FileIdentity?
    for _ in 0..<3 {
      guard let present = try place.statusIfPresent(step.name), present.identity != kept else {
        return
      }
      try keep(step, place, leaving: (present.kind == .directory) != (kind == .directory))
      kept = present.identity
    }
    throw SystemError.replaced(place.path.appending(step.name))
  }

  /// Whether the new entry of a step is still staged.
  func isStaged(_ step: JournalStep) throws(SystemError) -> Bool {
    guard let source = step.source else { return false }
    return try staged(step, source) != nil
  }

  private func staged(_ step: JournalStep, _ source: Int) throws(SystemError) -> FileStatus? {
    try within(source, at: step.directory) { from throws(SystemError) in
      try from.statusIfPresent(step.sourceName ?? step.name)
    } ?? nil
  }

  /// Whether the entry that a step replaced is kept.
  func isKept(_ step: JournalStep) throws(SystemError) -> Bool {
    guard let kept = step.kept else { return false }
    let status = try within(kept, at: step.directory) { place throws(SystemError) in
      try place.statusIfPresent(step.keptName ?? step.name)
    }
    return (status ?? nil) != nil
  }

  private func fill(
    _ step: JournalStep, from source: Int, in place: borrowing Directory
  ) throws(SystemError) {
    // It is renamed within the same directory, which is open already.
    if source == step.root { return try move(step, from: place, to: place) }
    try cursor(source).withDirectory(step.directory) { from throws(SystemError) in
      try move(step, from: from, to: place)
    }
  }

  private func move(
    _ step: JournalStep, from: borrowing Directory, to place: borrowing Directory
  ) throws(SystemError) {
    let (name, staged) = (step.name, step.sourceName ?? step.name)
    if let present = try place.statusIfPresent(name), present.kind != .directory {
      return try from.rename(staged, to: name, in: place)
    }
    try from.addOpened(staged, to: place, as: name, note)
  }

  /// Keeps the present entry.
  private func keep(
    _ step: JournalStep, _ place: borrowing Directory, leaving: Bool = true
  ) throws(SystemError) {
    guard let kept = step.kept else {
      throw SystemError.replaced(place.path.appending(step.name))
    }
    let (name, keptName) = (step.name, step.keptName ?? step.name)
    let used =
      if kept == step.root {
        try place.keep(name, in: place, as: keptName, leaving: leaving, note)
      } else {
        try cursor(kept).withDirectory(step.directory, making: true) {
          directory throws(SystemError) in
          try place.keep(name, in: directory, as: keptName, leaving: leaving, note)
        }
      }
    if let used, used != keptName || step.unit != nil { keptNames[step] = used }
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

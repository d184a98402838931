package import SystemIO

/// The next step of a walk after an entry.
package enum WalkStep: Sendable, Hashable {
  /// Continue, and enter the entry if it is a directory.
  case enter
  /// Continue with the next sibling.
  case skip
  /// End the walk.
  case stop
}

/// A finding of a walk that continues past damage.
package enum WalkFinding: Sendable, Hashable {
  case entry(TreeEntry)
  /// The directory, or the rest of it, cannot be read.
  case damage(StoreError)
  /// Some entries of the directory cannot be read. The walk continues with the others.
  case lost(UnreadableNames, StoreError)
}

extension RepositoryReader {
  /// Walks a tree depth first, ordered by the bytes of the names, each directory before its
  /// content. Paths are relative to the tree.
  ///
  /// Memory is bounded for any tree: of the open directories only the innermost 32 MiB are held,
  /// and the others are read again when the walk returns to them. A depth over 4,096 directories,
  /// or a path over 64 KiB, is `damaged`.
  package func walk(
    _ tree: TreeReference, _ body: (ByteString, TreeEntry) throws -> WalkStep
  ) throws {
    try walk(WalkStack<WalkLevel>(tree), body)
  }

  func walk(
    _ start: WalkStack<WalkLevel>, _ body: (ByteString, TreeEntry) throws -> WalkStep
  ) throws {
    try walkPastDamage(start) { path, finding in
      switch finding {
      case .entry(let entry): return try body(path, entry)
      case .damage(let error), .lost(_, let error): throw error
      }
    }
  }

  /// Walks like `walk(_:_:)`, but continues past damage. If a directory or some of its pages cannot
  /// be read, that is reported under the directory's path (empty for the tree itself) in place of
  /// the lost entries. After damage, only the step `stop` has an effect.
  package func walkPastDamage(
    _ tree: TreeReference, _ body: (ByteString, WalkFinding) throws -> WalkStep
  ) throws {
    guard let watch else { return try walkPastDamage(WalkStack<WalkLevel>(tree), body) }
    try walkPastDamage(WalkStack<WalkLevel>(tree)) { path, finding in
      if case .entry(let entry) = finding {
        return try watch.take(path, node: entry.node) { try body(path, finding) }
      }
      watch.counters.didFail()
      return try body(path, finding)
    }
  }

  func walkPastDamage(
    _ start: WalkStack<WalkLevel>, _ body: (ByteString, WalkFinding) throws -> WalkStep
  ) throws {
    var stack = start
    while let (path, finding) = try nextFinding(of: &stack) {
      let step = try body(path, finding)
      if step == .stop { return }
      guard step == .enter, case .entry(let entry) = finding,
        case .directory(let below) = entry.node
      else { continue }
      do throws(StoreError) {
        try stack.enter(below, path: path)
      } catch {
        guard error.kind == .damaged else { throw error }
        if try body(path, .damage(error)) == .stop { return }
      }
    }
  }

  /// Returns the next entry, or the damage of a directory that cannot be read further, once, or the
  /// lost names of a directory with other readable pages. Returns nil at the end.
  private func nextFinding(
    of stack: inout WalkStack<WalkLevel>
  ) throws(StoreError) -> (ByteString, WalkFinding)? {
    while true {
      if let (directory, entry) = stack.takeHeld() { return finding(entry, in: directory) }
      guard var level = stack.leave() else { return nil }
      do throws(StoreError) {
        guard let found = try next(&level) else { continue }
        stack.add(level)
        if case .entry(let entry) = found { return finding(entry, in: level.path) }
        return (level.path, found)
      } catch {
        guard error.kind == .damaged else { throw error }
        return (level.path, .damage(error))
      }
    }
  }

  private func finding(
    _ entry: TreeEntry, in directory: ByteString
  ) -> (ByteString, WalkFinding) {
    let path = directory.appending(entry.name)
    if path.count <= FormatLimit.path { return (path, .entry(entry)) }
    let reason = "paths below it are longer than \(FormatLimit.path) bytes"
    return (directory, .damage(.damaged(directory.description, reason)))
  }

  /// Returns the next entry of a directory, which is read if it is not held, or the names lost
  /// before it. Returns nil at the end.
  private func next(_ level: inout WalkLevel) throws(StoreError) -> WalkFinding? {
    if level.directory == nil { level.directory = try openDirectory(level.tree) }
    guard let directory = level.directory else { return nil }
    while level.page < directory.pages {
      if level.held == nil, let lost = try readNext(&level, in: directory) {
        return .lost(lost.names, lost.error)
      }
      if let entries = level.held?.entries, level.entry < entries.count {
        level.entry += 1
        return .entry(entries[level.entry - 1])
      }
      level.page += 1
      level.entry = 0
      level.held = nil
    }
    return nil
  }

  /// Reads the page of a level, or the next readable one. Returns the lost pages before it, if any.
  private func readNext(
    _ level: inout WalkLevel, in directory: OpenDirectory
  ) throws(StoreError) -> UnreadablePages? {
    let part = try readNext(&level.page, in: directory)
    level.held = part.page
    // A page that was read before may be damaged when it is read again.
    if part.lost != nil { level.entry = 0 }
    return part.lost
  }
}

/// The position of a walk in one of its open directories.
struct WalkLevel: WalkHolder {
  let tree: TreeReference
  let path: ByteString
  var page = 0
  var entry = 0
  var directory: RepositoryReader.OpenDirectory?
  var held: (entries: [TreeEntry], size: Int)?

  /// The encoded size of the held pages, in bytes.
  var size: Int { (directory?.size ?? 0) + (held?.size ?? 0) }

  mutating func forget() { (directory, held) = (nil, nil) }
}

/// An open directory of a walk, whose held pages can be released and read again.
protocol WalkHolder {
  /// The encoded size of the held pages, in bytes.
  var size: Int { get }
  /// Releases the held pages and keeps the position.
  mutating func forget()
}

/// The open directories of a walk, the outermost first.
struct WalkStack<Level: WalkHolder> {
  private var levels: [Level] = []
  /// The encoded size of the pages of all levels, and the outermost level that holds any.
  private var size = 0
  private var firstHeld = 0

  /// The maximum encoded size of held pages, in bytes.
  private let budget: Int

  init(_ first: Level, budget: Int = 32 << 20) {
    self.budget = budget
    add(first)
  }

  mutating func add(_ level: Level) {
    levels.append(level)
    size += level.size
    firstHeld = min(firstHeld, levels.count - 1)
  }

  mutating func leave() -> Level? {
    guard let level = levels.popLast() else { return nil }
    size -= level.size
    return level
  }

  /// Enters a directory. The outermost levels release their pages until the rest is within the
  /// budget.
  mutating func enter(_ level: Level, path: ByteString) throws(StoreError) {
    guard levels.count < FormatLimit.depth else {
      throw .damaged(path.description, "it lies deeper than \(FormatLimit.depth) directories")
    }
    add(level)
    while size > budget && firstHeld < levels.count - 1 {
      size -= levels[firstHeld].size
      levels[firstHeld].forget()
      firstHeld += 1
    }
  }
}

extension WalkStack<WalkLevel> {
  /// Returns the next entry of the innermost directory with the directory's path, or nil if its
  /// page is not held. This is the common case, and leaves the level on the stack.
  mutating func takeHeld() -> (directory: ByteString, entry: TreeEntry)? {
    guard let last = levels.indices.last, let held = levels[last].held,
      levels[last].entry < held.entries.count
    else { return nil }
    levels[last].entry += 1
    return (levels[last].path, held.entries[levels[last].entry - 1])
  }

  init(_ tree: TreeReference, budget: Int = 32 << 20) {
    self.init(WalkLevel(tree: tree, path: ""), budget: budget)
  }

  mutating func enter(_ tree: TreeReference, path: ByteString) throws(StoreError) {
    try enter(WalkLevel(tree: tree, path: path), path: path)
  }
}

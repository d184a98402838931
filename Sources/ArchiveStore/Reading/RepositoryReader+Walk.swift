public import SystemIO

/// What a walk does after an entry.
public enum WalkStep: Sendable, Hashable {
  /// Goes on, into the directory if it is one.
  case enter
  /// Goes on with what is beside it.
  case skip
  /// Ends the walk.
  case stop
}

/// What a walk that goes past damage finds at a path.
public enum WalkFinding: Sendable, Hashable {
  case entry(TreeEntry)
  /// The directory there cannot be read, or nothing more of it.
  case damage(StoreError)
  /// A part of the directory's entries cannot be read; the walk goes on with the others.
  case lost(LostNames, StoreError)
}

extension RepositoryReader {
  /// Walks a tree, depth first, by the bytes of the names, a directory before what it holds. Paths are
  /// relative to the tree.
  ///
  /// Memory stays bounded for any tree: of the directories above, only the nearest 32 MiB are held, and
  /// the others are read again on the way back. Deeper than 4,096 directories, or a path over 64 KiB,
  /// is `damaged`.
  public func walk(
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

  /// Walks as `walk(_:_:)` does, and past damage: where a directory cannot be read, or some of its pages
  /// cannot, that is told under its path (the empty one for the tree itself) in place of what it
  /// holds, or of the names on these pages. The step given for damage is of no effect but for `stop`.
  public func walkPastDamage(
    _ tree: TreeReference, _ body: (ByteString, WalkFinding) throws -> WalkStep
  ) throws {
    guard let watch else { return try walkPastDamage(WalkStack<WalkLevel>(tree), body) }
    try walkPastDamage(WalkStack<WalkLevel>(tree)) { path, finding in
      if case .entry(let entry) = finding {
        return try watch.take(path, entry.node) { try body(path, finding) }
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

  /// The next entry; of a directory that cannot be read on, the damage, once; and what is lost of one of
  /// which other pages can be read.
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

  /// The next entry of a directory, which is read if it is not held, or what is lost before that.
  private func next(_ level: inout WalkLevel) throws(StoreError) -> WalkFinding? {
    if level.directory == nil { level.directory = try openDirectory(level.tree) }
    guard let directory = level.directory else { return nil }
    while level.page < directory.pages {
      if level.held == nil, let lost = try readOn(&level, in: directory) {
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

  /// Reads the page that a level is at, or the next one that can be read; gives what is lost before.
  private func readOn(
    _ level: inout WalkLevel, in directory: OpenDirectory
  ) throws(StoreError) -> LostPages? {
    let part = try readOn(&level.page, in: directory)
    level.held = part.page
    // One that was read before may be damaged when it is read again.
    if part.lost != nil { level.entry = 0 }
    return part.lost
  }
}

/// Where a walk is in one of the directories on its way.
struct WalkLevel: WalkHolder {
  let tree: TreeReference
  let path: ByteString
  var page = 0
  var entry = 0
  var directory: RepositoryReader.OpenDirectory?
  var held: (entries: [TreeEntry], size: Int)?

  /// Encoded bytes of what is held.
  var size: Int { (directory?.size ?? 0) + (held?.size ?? 0) }

  mutating func forget() { (directory, held) = (nil, nil) }
}

/// What a walk holds of a directory on its way, and can read again.
protocol WalkHolder {
  /// Encoded bytes of what is held.
  var size: Int { get }
  /// Lets go of what is held, and not of the place.
  mutating func forget()
}

/// The directories that a walk is in, the outermost first.
struct WalkStack<Level: WalkHolder> {
  private var levels: [Level] = []
  /// Encoded bytes of what all levels hold, and the outermost level that holds anything.
  private var size = 0
  private var firstHeld = 0

  /// What may be held of all levels.
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

  /// Goes into a directory; what the outermost hold is forgotten until the rest is in the budget.
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
  /// The next entry of the innermost directory and that directory's path, where its page is held: most are,
  /// and the level stays where it is.
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

public import SystemIO

/// What a walk does after an entry.
public enum WalkStep: Sendable, Hashable {
  /// Goes on, into the folder if it is one.
  case enter
  /// Goes on with what is beside it.
  case skip
  /// Ends the walk.
  case stop
}

extension RepositoryReader {
  /// Walks a tree, depth first, by the bytes of the names, a folder before what it holds. Paths are
  /// relative to the tree.
  ///
  /// Memory stays bounded for any tree: of the folders above, only the nearest 32 MiB are held, and
  /// the others are read again on the way back. Deeper than 4,096 folders, or a path over 64 KiB,
  /// is `damaged`.
  public func walk(
    _ tree: TreeReference, _ body: (ByteString, TreeEntry) throws -> WalkStep
  ) throws {
    try walk(WalkStack(tree), body)
  }

  func walk(
    _ start: WalkStack, _ body: (ByteString, TreeEntry) throws -> WalkStep
  ) throws {
    var stack = start
    while let (path, entry) = try nextEntry(of: &stack) {
      switch try body(path, entry) {
      case .stop: return
      case .skip: continue
      case .enter:
        if case .directory(let below) = entry.node { try stack.enter(below, path: path) }
      }
    }
  }

  private func nextEntry(
    of stack: inout WalkStack
  ) throws(StoreError) -> (ByteString, TreeEntry)? {
    while var level = stack.leave() {
      guard let entry = try next(&level) else { continue }
      let path = level.path.appending(entry.name)
      guard path.count <= FormatLimit.path else {
        throw .damaged(
          level.path.description, "paths below it are longer than \(FormatLimit.path) bytes")
      }
      stack.add(level)
      return (path, entry)
    }
    return nil
  }

  /// The next entry of a folder, which is read if it is not held.
  private func next(_ level: inout WalkLevel) throws(StoreError) -> TreeEntry? {
    if level.folder == nil { level.folder = try openFolder(level.tree) }
    guard let folder = level.folder else { return nil }
    while level.page < folder.pages {
      if level.held == nil { level.held = try page(level.page, of: folder) }
      if let entries = level.held?.entries, level.entry < entries.count {
        level.entry += 1
        return entries[level.entry - 1]
      }
      level.page += 1
      level.entry = 0
      level.held = nil
    }
    return nil
  }
}

/// Where a walk is in one of the folders on its way.
struct WalkLevel {
  let tree: TreeReference
  let path: ByteString
  var page = 0
  var entry = 0
  var folder: RepositoryReader.OpenFolder?
  var held: (entries: [TreeEntry], size: Int)?

  /// Encoded bytes of what is held.
  var size: Int { (folder?.size ?? 0) + (held?.size ?? 0) }
}

/// The folders that a walk is in, the outermost first.
struct WalkStack {
  private var levels: [WalkLevel] = []
  /// Encoded bytes of what all levels hold, and the outermost level that holds anything.
  private var size = 0
  private var firstHeld = 0

  /// What may be held of all levels.
  private let budget: Int

  init(_ tree: TreeReference, budget: Int = 32 << 20) {
    self.budget = budget
    add(WalkLevel(tree: tree, path: ""))
  }

  mutating func add(_ level: WalkLevel) {
    levels.append(level)
    size += level.size
    firstHeld = min(firstHeld, levels.count - 1)
  }

  mutating func leave() -> WalkLevel? {
    guard let level = levels.popLast() else { return nil }
    size -= level.size
    return level
  }

  /// Goes into a folder; what the outermost hold is forgotten until the rest is in the budget.
  mutating func enter(_ tree: TreeReference, path: ByteString) throws(StoreError) {
    guard levels.count < FormatLimit.depth else {
      throw .damaged(path.description, "it lies deeper than \(FormatLimit.depth) folders")
    }
    add(WalkLevel(tree: tree, path: path))
    while size > budget && firstHeld < levels.count - 1 {
      size -= levels[firstHeld].size
      levels[firstHeld].folder = nil
      levels[firstHeld].held = nil
      firstHeld += 1
    }
  }
}

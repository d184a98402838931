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
    var levels = [WalkLevel(tree: tree, path: "")]
    while var level = levels.popLast() {
      guard let entry = try next(&level) else { continue }
      let path = level.path.appending(entry.name)
      guard path.count <= FormatLimit.path else {
        throw StoreError.damaged(
          level.path.description, "paths below it are longer than \(FormatLimit.path) bytes")
      }
      levels.append(level)
      switch try body(path, entry) {
      case .stop: return
      case .skip: continue
      case .enter:
        guard case .directory(let below) = entry.node else { continue }
        guard levels.count < FormatLimit.depth else {
          throw StoreError.damaged(
            path.description, "it lies deeper than \(FormatLimit.depth) folders")
        }
        levels.append(WalkLevel(tree: below, path: path))
        WalkLevel.forgetOutermost(&levels)
      }
    }
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

  /// Encoded bytes of what may be held of all levels.
  static let budget = 32 << 20

  var heldBytes: Int { (folder?.size ?? 0) + (held?.size ?? 0) }

  /// Forgets what the outermost folders hold until the rest is within the budget.
  static func forgetOutermost(_ levels: inout [WalkLevel]) {
    var bytes = 0
    for number in levels.indices.reversed() {
      bytes += levels[number].heldBytes
      guard bytes > budget, number < levels.count - 1 else { continue }
      if levels[number].folder == nil { return }
      levels[number].folder = nil
      levels[number].held = nil
    }
  }
}

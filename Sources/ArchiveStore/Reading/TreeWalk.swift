internal import SystemIO

/// A walk of one tree, depth first, with its position in the open directories.
public struct TreeWalk {
  private let reader: RepositoryReader
  private var stack: Stack<Level>

  /// Starts at a tree. The open directories hold pages of at most `budget` bytes, apart from the
  /// innermost.
  init(_ reader: RepositoryReader, _ tree: TreeReference, budget: Int) {
    self.reader = reader
    stack = Stack(tree, budget: budget)
  }

  /// Passes all findings to `body`. After damage, only the step `stop` has an effect.
  mutating func run(_ body: (ByteString, Finding) throws -> Step) throws {
    while let (path, finding) = try nextFinding() {
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
  private mutating func nextFinding() throws(StoreError) -> (ByteString, Finding)? {
    while true {
      if let (directory, entry) = stack.nextLoaded() { return finding(entry, in: directory) }
      guard var level = stack.pop() else { return nil }
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
  ) -> (ByteString, Finding) {
    let path = directory.appending(entry.name)
    if path.count <= FormatLimit.path { return (path, .entry(entry)) }
    let reason = "paths below it are longer than \(FormatLimit.path) bytes"
    return (directory, .damage(.damaged(directory.description, reason)))
  }

  /// Returns the next entry of a directory, which is read if it is not held, or the names lost
  /// before it. Returns nil at the end.
  private func next(_ level: inout Level) throws(StoreError) -> Finding? {
    if level.directory == nil { level.directory = try reader.openDirectory(level.tree) }
    guard let directory = level.directory else { return nil }
    while level.page < directory.pages {
      if level.loaded == nil, let lost = try readNext(&level, in: directory) {
        return .lost(lost.names, lost.error)
      }
      if let entries = level.loaded?.entries, level.entry < entries.count {
        level.entry += 1
        return .entry(entries[level.entry - 1])
      }
      level.page += 1
      level.entry = 0
      level.loaded = nil
    }
    return nil
  }

  /// Reads the page of a level, or the next readable one. Returns the lost pages before it, if any.
  private func readNext(
    _ level: inout Level, in directory: RepositoryReader.OpenDirectory
  ) throws(StoreError) -> UnreadableNames.Pages? {
    let part = try reader.readNext(&level.page, in: directory)
    level.loaded = part.page
    // A page that was read before may be damaged when it is read again.
    if part.lost != nil { level.entry = 0 }
    return part.lost
  }
}

extension TreeWalk {
  /// The next step of a walk after an entry.
  public enum Step: Sendable, Hashable {
    /// Continue, and enter the entry if it is a directory.
    case enter
    /// Continue with the next sibling.
    case skip
    /// End the walk.
    case stop
  }

  /// A finding of a walk that continues past damage.
  public enum Finding: Sendable, Hashable {
    case entry(TreeEntry)
    /// The directory, or the rest of it, cannot be read.
    case damage(StoreError)
    /// Some entries of the directory cannot be read. The walk continues with the others.
    case lost(UnreadableNames, StoreError)
  }

  /// The position of a walk in one of its open directories.
  struct Level: Holder {
    let tree: TreeReference
    let path: ByteString
    var page = 0
    var entry = 0
    var directory: RepositoryReader.OpenDirectory?
    var loaded: (entries: [TreeEntry], size: Int)?

    /// The encoded size of the held pages, in bytes.
    var size: Int { (directory?.size ?? 0) + (loaded?.size ?? 0) }

    mutating func forget() { (directory, loaded) = (nil, nil) }
  }

  /// An open directory of a walk, whose held pages can be released and read again.
  protocol Holder {
    /// The encoded size of the held pages, in bytes.
    var size: Int { get }
    /// Releases the held pages and keeps the position.
    mutating func forget()
  }

  /// The usual maximum encoded size of held pages, in bytes.
  static let budget = 32 << 20

  /// The open directories of a walk, the outermost first.
  struct Stack<Level: Holder> {
    private var levels: [Level] = []
    /// The encoded size of the pages of all levels, and the outermost level that holds any.
    private var size = 0
    private var firstLoaded = 0

    /// The maximum encoded size of held pages, in bytes.
    private let budget: Int

    init(_ first: Level, budget: Int = TreeWalk.budget) {
      self.budget = budget
      add(first)
    }

    mutating func add(_ level: Level) {
      levels.append(level)
      size += level.size
      firstLoaded = min(firstLoaded, levels.count - 1)
    }

    mutating func pop() -> Level? {
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
      while size > budget && firstLoaded < levels.count - 1 {
        size -= levels[firstLoaded].size
        levels[firstLoaded].forget()
        firstLoaded += 1
      }
    }
  }
}

extension TreeWalk.Stack<TreeWalk.Level> {
  /// Returns the next entry of the innermost directory with the directory's path, or nil if its
  /// page is not held. This is the common case, and leaves the level on the stack.
  mutating func nextLoaded() -> (directory: ByteString, entry: TreeEntry)? {
    guard let last = levels.indices.last, let held = levels[last].loaded,
      levels[last].entry < held.entries.count
    else { return nil }
    levels[last].entry += 1
    return (levels[last].path, held.entries[levels[last].entry - 1])
  }

  init(_ tree: TreeReference, budget: Int) {
    self.init(TreeWalk.Level(tree: tree, path: ""), budget: budget)
  }

  mutating func enter(_ tree: TreeReference, path: ByteString) throws(StoreError) {
    try enter(TreeWalk.Level(tree: tree, path: path), path: path)
  }
}

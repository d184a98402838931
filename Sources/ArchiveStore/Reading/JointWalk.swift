internal import Codecs
internal import SystemIO

/// A walk of several trees as one, with its position in the open directories.
public struct JointWalk {
  typealias Body = (ByteString, Finding) throws -> TreeWalk.Step

  private let reader: RepositoryReader
  private var stack: TreeWalk.Stack<Level>
  /// The number of trees that must share content for it to be skipped; 0 if nothing is skipped.
  private let alike: Int

  /// - Parameter budget: the usual maximum encoded size of held pages, in bytes.
  init(
    _ reader: RepositoryReader, _ trees: [TreeReference], differencesOnly: Bool,
    budget: Int = TreeWalk.budget
  ) {
    self.reader = reader
    if trees.count > 2 { reader.holdMoreTrees() }
    alike = differencesOnly ? trees.count : 0
    let directories = Directory.distinct(trees.enumerated().map { (tree: $1, trees: [$0]) })
    let isAlike = directories.first?.trees.count == alike
    stack = TreeWalk.Stack(
      Level(path: "", directories: isAlike ? [] : directories, alike: alike), budget: budget)
  }

  /// Passes all findings to `body`. After damage, only the step `stop` has an effect.
  mutating func run(_ body: Body) throws {
    while let (path, found) = try next(body) {
      switch try body(path, .entries(found.entries, unknownIn: found.unknown)) {
      case .stop: return
      case .skip: continue
      case .enter: if try !enter(found, at: path, body) { return }
      }
    }
  }

  /// Returns the next path and its entries, or nil at the end or if `body` stops at damage.
  private mutating func next(_ body: Body) throws -> (ByteString, Names)? {
    while var level = stack.pop() {
      if try !readNext(&level, body) { return nil }
      guard let found = level.next() else { continue }
      let path = level.path.appending(found.name)
      stack.add(level)
      if found.entries.count == 1, found.entries[0].trees.count == alike { continue }
      if path.count <= FormatLimit.path { return (path, found) }
      let error = StoreError.damaged(
        level.path.description, "paths below it are longer than \(FormatLimit.path) bytes")
      if try body(level.path, .damage(error, trees: found.trees)) == .stop { return nil }
    }
    return nil
  }

  /// Enters the directories among the entries. Returns false if `body` stops at damage.
  private mutating func enter(_ found: Names, at path: ByteString, _ body: Body) throws -> Bool {
    let directories = found.directories
    guard let first = directories.first, first.trees.count != alike else { return true }
    do throws(StoreError) {
      try stack.enter(Level(path: path, directories: directories, alike: alike), path: path)
      return true
    } catch {
      let trees = directories.flatMap(\.trees).sorted()
      return try body(path, .damage(error, trees: trees)) != .stop
    }
  }

  /// Reads the next page of each directory if needed. Returns false if `body` stops at damage.
  private func readNext(_ level: inout Level, _ body: Body) throws -> Bool {
    if !level.isOpen { reader.expect(level.directories.map(\.tree)) }
    for number in level.separate {
      do throws(StoreError) {
        try level.open(number, reader)
      } catch {
        guard error.kind == .damaged else { throw error }
        level.directories[number].abandon()
        if try !report(error, in: level, directory: number, to: body) { return false }
      }
    }
    level.finishOpening()
    level.findCommonPages()
    for number in level.separate {
      while let lost = try level.readNext(number, reader) {
        if try !report(lost.error, in: level, directory: number, to: body) { return false }
      }
    }
    return true
  }

  private func report(
    _ error: StoreError, in level: Level, directory number: Int, to body: Body
  ) throws -> Bool {
    let finding = Finding.damage(error, trees: level.directories[number].trees)
    return try body(level.path, finding) != .stop
  }
}

extension JointWalk {
  /// A finding of a walk of several trees at a path.
  public enum Finding: Sendable {
    /// The distinct entries at the path. For the trees in `unknownIn` it is unknown whether they
    /// have the name, because part of the directory cannot be read.
    case entries([Entry], unknownIn: [Int])
    /// The directory at the path, or part of its entries, cannot be read in these trees.
    case damage(StoreError, trees: [Int])
  }

  /// An entry that some of several trees have at the same path.
  public struct Entry: Sendable, Hashable {
    public let entry: TreeEntry
    /// The trees that have the entry, as ascending indices into the list passed to the walk.
    public let trees: [Int]
  }
}

extension JointWalk {
  /// The entries that several directories have under one name.
  struct Names {
    let name: ByteString
    /// The distinct entries with their trees, after `finish`.
    private(set) var entries: [Entry] = []
    /// The trees that may also have the name.
    var unknown: [Int] = []
    /// The distinct entries, and for each the numbers of its directories: neighbouring ones, such
    /// as those of successive snapshots, mostly have equal entries, so ranges are short lists.
    private var distinct: [(entry: TreeEntry, directories: [Range<Int>])] = []
    /// The position of each entry, if there are many.
    private var indexes: [TreeEntry: Int] = [:]
    /// The entry of the last directory: that of the next one is often equal.
    private var last = 0

    /// The number of entries from which they are looked up by their hashes.
    private static let manyEntries = 8

    init(name: ByteString) { self.name = name }

    /// The distinct entries of a name, each with ascending numbers of directories.
    init(name: ByteString, distinct: [(entry: TreeEntry, directories: [Range<Int>])]) {
      (self.name, self.distinct) = (name, distinct)
      last = distinct.count
    }

    /// The only entry of a name.
    init(_ entry: TreeEntry, of trees: [Int]) {
      name = entry.name
      entries = [Entry(entry: entry, trees: trees)]
    }

    /// Adds the entry of a directory.
    mutating func add(_ entry: TreeEntry, of directory: Int) {
      guard let same = index(of: entry) else {
        last = distinct.count
        distinct.append((entry, [directory..<directory + 1]))
        if !indexes.isEmpty { indexes[entry] = last }
        return
      }
      last = same
      let ranges = distinct[same].directories
      if let end = ranges.last, end.upperBound == directory {
        distinct[same].directories[ranges.count - 1] = end.lowerBound..<directory + 1
      } else {
        distinct[same].directories.append(directory..<directory + 1)
      }
    }

    private mutating func index(of entry: TreeEntry) -> Int? {
      if last < distinct.count, distinct[last].entry == entry { return last }
      guard distinct.count >= Self.manyEntries else {
        return distinct.firstIndex { $0.entry == entry }
      }
      if indexes.isEmpty {
        for (index, found) in distinct.enumerated() { indexes[found.entry] = index }
      }
      return indexes[entry]
    }

    /// Finds the trees of each entry, in ascending order.
    ///
    /// - Parameter all: the trees of all directories, in ascending order.
    mutating func finish(_ directories: [Directory], all: [Int]) {
      // Most entries are in all directories and share one list of trees.
      if distinct.count == 1, distinct[0].directories.count == 1,
        distinct[0].directories[0] == directories.indices
      {
        entries = [Entry(entry: distinct[0].entry, trees: all)]
        distinct = []
        return
      }
      entries = distinct.map { entry, ranges in
        var trees: [Int] = []
        trees.reserveCapacity(ranges.reduce(0) { $0 + $1.count })
        for number in ranges.joined() { trees += directories[number].trees }
        if trees.count > 1 { trees.sort() }
        return Entry(entry: entry, trees: trees)
      }
      (distinct, indexes) = ([], [:])
    }

    /// The trees that have an entry of this name.
    var trees: [Int] { entries.flatMap(\.trees).sorted() }

    /// The distinct directories among the entries.
    var directories: [Directory] {
      Directory.distinct(
        entries.compactMap { found in
          guard case .directory(let tree) = found.entry.node else { return nil }
          return (tree, found.trees)
        })
    }
  }
}

public import SystemIO

/// What a walk of several trees finds at a path.
public enum JointFinding: Sendable {
  /// What is there, each distinct entry once; of some trees it is not known whether they have the name,
  /// as it may be in a part of the directory that cannot be read.
  case entries([JointEntry], unknownIn: [Int])
  /// The directory there, or a part of its entries, cannot be read in these trees.
  case damage(StoreError, trees: [Int])
}

/// An entry that some of several trees have at the same path.
public struct JointEntry: Sendable, Hashable {
  public let entry: TreeEntry
  /// Which of the trees have it: their places in the list that the walk was given, rising.
  public let trees: [Int]
}

extension RepositoryReader {
  /// Walks several trees as one, depth first, by the bytes of the names, a directory before what it
  /// holds; a directory that several trees have at a path is read once. Paths are relative to the
  /// trees. Goes past damage as `walkPastDamage` does, and is bounded in memory as it is.
  ///
  /// With `differencesOnly` what all trees have alike is neither told nor, where it is a directory or
  /// a page of one, read.
  public func walkTogether(
    _ trees: [TreeReference], differencesOnly: Bool = false,
    _ body: (ByteString, JointFinding) throws -> WalkStep
  ) throws {
    let walk = JointWalk(self, trees, differencesOnly: differencesOnly)
    guard let watch else { return try run(walk, body) }
    try run(walk) { path, found in
      if case .entries(let entries, _) = found {
        return try watch.take(path, entries[0].entry.node) { try body(path, found) }
      }
      watch.counters.didFail()
      return try body(path, found)
    }
  }

  private func run(_ start: JointWalk, _ body: JointWalk.Body) throws {
    var walk = start
    while let (path, found) = try walk.next(body) {
      switch try body(path, .entries(found.entries, unknownIn: found.unknown)) {
      case .stop: return
      case .skip: continue
      case .enter: if try !walk.enter(found, at: path, body) { return }
      }
    }
  }
}

/// The state of a walk of several trees.
private struct JointWalk {
  typealias Body = (ByteString, JointFinding) throws -> WalkStep

  private let reader: RepositoryReader
  private var stack: WalkStack<JointLevel>
  /// How many trees have to be alike for what they have to be passed over; 0: nothing is.
  private let alike: Int

  init(_ reader: RepositoryReader, _ trees: [TreeReference], differencesOnly: Bool) {
    self.reader = reader
    alike = differencesOnly ? trees.count : 0
    let directories = JointDirectory.distinct(trees.enumerated().map { (tree: $1, trees: [$0]) })
    let isAlike = directories.first?.trees.count == alike
    stack = WalkStack(JointLevel(path: "", directories: isAlike ? [] : directories, alike: alike))
  }

  /// The next path, and what is there; nothing at the end, or when `body` stops at damage.
  mutating func next(_ body: Body) throws -> (ByteString, JointNames)? {
    while var level = stack.leave() {
      if try !readOn(&level, body) { return nil }
      guard let found = level.takeNext() else { continue }
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

  /// Goes into the directories that were found; false when `body` stops at damage.
  mutating func enter(_ found: JointNames, at path: ByteString, _ body: Body) throws -> Bool {
    let directories = found.directories
    guard let first = directories.first, first.trees.count != alike else { return true }
    do throws(StoreError) {
      try stack.enter(JointLevel(path: path, directories: directories, alike: alike), path: path)
      return true
    } catch {
      let trees = directories.flatMap(\.trees).sorted()
      return try body(path, .damage(error, trees: trees)) != .stop
    }
  }

  /// Reads what comes next of each directory; false when `body` stops at damage.
  private func readOn(_ level: inout JointLevel, _ body: Body) throws -> Bool {
    for number in level.directories.indices {
      do throws(StoreError) {
        try level.open(number, reader)
      } catch {
        guard error.kind == .damaged else { throw error }
        level.directories[number].giveUp()
        if try !tell(error, level, number, body) { return false }
      }
    }
    level.findCommonPages()
    for number in level.directories.indices {
      while let lost = try level.readOn(number, reader) {
        if try !tell(lost.error, level, number, body) { return false }
      }
    }
    return true
  }

  private func tell(
    _ error: StoreError, _ level: JointLevel, _ number: Int, _ body: Body
  ) throws -> Bool {
    let finding = JointFinding.damage(error, trees: level.directories[number].trees)
    return try body(level.path, finding) != .stop
  }
}

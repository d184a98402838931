import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Joint walks of several trees, compared with separate walks.
struct JointWalkTests {
  private let storage = MemoryStorage()
  private let repository: Repository

  init() throws { repository = try Repository.create(in: storage, program: "test") }

  /// Makes a tree of nested directories. Variants with the same seed have the same entries, with
  /// few exceptions.
  private func makeTree(
    _ session: WritingSession, depth: Int, names: Int, variant: UInt64, _ random: inout SeededBytes
  ) throws -> TreeReference {
    var entries: [TreeEntry] = []
    for number in 0..<names {
      let name = ByteString("\(number)" + (number % 3 == 0 ? "" : "-\(number % 7)"))
      let chance = random.next() % 16
      // Entries that differ between variants.
      if chance == variant % 16 { continue }
      let modified = Timestamp(seconds: chance == (variant + 1) % 16 ? Int64(variant) : 7)
      if depth > 0, number % 4 == 0 {
        let below = try makeTree(
          session, depth: depth - 1, names: names, variant: variant, &random)
        entries.append(TreeEntry(name: name, node: .directory(below), modified: modified))
      } else {
        entries.append(TreeEntry(name: name, node: .fifo, modified: modified))
      }
    }
    entries.sort { $0.name < $1.name }
    return try session.storeTree(entries)
  }

  private func listing(
    _ reader: RepositoryReader, _ tree: TreeReference
  ) throws -> [ByteString: TreeEntry] {
    var all: [ByteString: TreeEntry] = [:]
    try reader.walk(tree) { path, entry in
      all[path] = entry
      return .enter
    }
    return all
  }

  @Test(arguments: [UInt64(1), 2, 3], [1, 2, 5])
  func jointWalkEqualsSeparateWalks(seed: UInt64, count: Int) throws {
    let session = try repository.beginWriting()
    var trees: [TreeReference] = []
    for variant in 0..<count {
      var random = SeededBytes(seed: seed)
      trees.append(
        try makeTree(session, depth: 2, names: 24, variant: UInt64(variant), &random))
    }
    trees.append(trees[0])
    _ = try session.finish(repository.makeSnapshot(trees[0]))
    let reader = try repository.beginReading()
    let each = try trees.map { try listing(reader, $0) }
    for differencesOnly in [false, true] {
      var joint = trees.map { _ in [ByteString: TreeEntry]() }
      var paths: [ByteString] = []
      try reader.walkTogether(trees, differencesOnly: differencesOnly) { path, found in
        guard case .entries(let entries, _) = found else {
          Issue.record("damage at \(path)")
          return .stop
        }
        paths.append(path)
        #expect(Set(entries.map(\.entry)).count == entries.count)
        for entry in entries {
          #expect(entry.trees == entry.trees.sorted())
          for tree in entry.trees { joint[tree][path] = entry.entry }
        }
        return .enter
      }
      #expect(paths == paths.sorted { $0.components.lexicographicallyPrecedes($1.components) })
      #expect(Set(paths).count == paths.count)
      for (number, all) in each.enumerated() {
        let wanted =
          differencesOnly
          ? all.filter { path, entry in
            each.contains { $0[path] != entry }
          } : all
        #expect(joint[number] == wanted)
      }
    }
  }

  /// Directories of many pages: exactly the pages that all trees share are skipped.
  @Test func commonPagesAreSkipped() throws {
    let session = try repository.beginWriting()
    let all = (0..<9000).map { number in
      TreeEntry(name: ByteString("name \(number)"), node: .fifo)
    }.sorted { $0.name < $1.name }
    var other = all
    other.remove(at: 4000)
    other[10].modified = Timestamp(seconds: 1)
    other.append(TreeEntry(name: "zzz", node: .fifo))
    let trees = [try session.storeTree(all), try session.storeTree(other)]
    _ = try session.finish(repository.makeSnapshot(trees[0]))
    let reader = try repository.beginReading()
    let pages = try trees.map { try reader.openDirectory($0).pages }
    #expect(pages.allSatisfy { $0 > 2 })
    var paths: [ByteString] = []
    try reader.walkTogether(trees, differencesOnly: true) { path, _ in
      paths.append(path)
      return .enter
    }
    #expect(Set(paths) == [all[10].name, all[4000].name, "zzz"])
    var count = 0
    try reader.walkTogether(trees) { _, _ in
      count += 1
      return .enter
    }
    #expect(count == 9001)
  }

  /// Subtrees that all trees share are not read, and may even be missing.
  @Test func commonSubtreesAreNotRead() throws {
    var session = try repository.beginWriting()
    let same = try session.storeTree([TreeEntry(name: "deep", node: .fifo)])
    _ = try session.finish(repository.makeSnapshot(same))
    let packs = try RepositoryInventory(storage).packs.keys
    session = try repository.beginWriting()
    let trees = try ["a", "b"].map { name in
      try session.storeTree([
        TreeEntry(name: ByteString(name), node: .fifo),
        TreeEntry(name: "same", node: .directory(same)),
      ])
    }
    _ = try session.finish(repository.makeSnapshot(trees[0], sequence: 2))
    for pack in packs { try storage.remove(RepositoryLayout.tested.pack(pack)) }
    let reader = try repository.beginReading()
    var paths: [ByteString] = []
    try reader.walkTogether(trees, differencesOnly: true) { path, found in
      if case .damage = found { Issue.record("it was read") }
      paths.append(path)
      return .enter
    }
    #expect(paths == ["a", "b"])
    var damaged: [[Int]] = []
    try reader.walkTogether(trees) { _, found in
      if case .damage(_, let trees) = found { damaged.append(trees) }
      return .enter
    }
    #expect(damaged == [[0, 1]])
  }

  @Test func walkStopsAndSkipsOnRequest() throws {
    let session = try repository.beginWriting()
    let below = try session.storeTree([TreeEntry(name: "x", node: .fifo)])
    let trees = try [1, 2].map { number in
      try session.storeTree([
        TreeEntry(name: "a", node: .directory(below)),
        TreeEntry(name: "b", node: .directory(below), modified: Timestamp(seconds: number)),
      ])
    }
    _ = try session.finish(repository.makeSnapshot(trees[0]))
    let reader = try repository.beginReading()
    var paths: [ByteString] = []
    try reader.walkTogether(trees) { path, _ in
      paths.append(path)
      return path == "a" ? .skip : path == "b/x" ? .stop : .enter
    }
    #expect(paths == ["a", "b", "b/x"])
    try reader.walkTogether([]) { path, _ in
      Issue.record("there is nothing at \(path)")
      return .stop
    }
  }

  /// Excessive depth is reported once, and does not stop the walk.
  @Test func deepTreesAreDamage() throws {
    let session = try repository.beginWriting()
    var tree = try session.storeTree([])
    for _ in 0..<4100 {
      tree = try session.storeTree([TreeEntry(name: "d", node: .directory(tree))])
    }
    _ = try session.finish(repository.makeSnapshot(tree))
    let reader = try repository.beginReading()
    var damage: [StoreError] = []
    var entries = 0
    try reader.walkTogether([tree]) { _, found in
      if case .damage(let error, _) = found { damage.append(error) } else { entries += 1 }
      return .enter
    }
    #expect(damage.count == 1 && damage[0].reason.contains("4096"))
    #expect(entries == 4096)
  }

  // MARK: - Many trees

  /// The trees have different roots, and share all subdirectories: with and without memory for the
  /// pages of the outer directories.
  @Test(arguments: [0, TreeWalk.budget]) func directoriesOfManyTreesAreMerged(budget: Int) throws {
    let session = try repository.beginWriting()
    let below = try (0..<20).map { number in
      try session.storeTree([TreeEntry(name: ByteString("file \(number)"), node: .fifo)])
    }
    let trees = try (0..<60).map { variant in
      var entries = below.enumerated().map { number, tree in
        TreeEntry(name: ByteString("d\(number)"), node: .directory(tree))
      }
      entries.append(TreeEntry(name: ByteString("e\(variant % 30)"), node: .fifo))
      entries.append(
        TreeEntry(name: "changed", node: .fifo, modified: Timestamp(seconds: Int64(variant / 2))))
      return try session.storeTree(entries.sorted { $0.name < $1.name })
    }
    _ = try session.finish(repository.makeSnapshot(trees[0]))
    let reader = try repository.beginReading()
    var found: [ByteString: [JointWalk.Entry]] = [:]
    var walk = JointWalk(reader, trees, differencesOnly: false, budget: budget)
    try walk.run { path, finding in
      guard case .entries(let entries, let unknown) = finding, unknown.isEmpty else {
        Issue.record("damage at \(path)")
        return .stop
      }
      #expect(found.updateValue(entries, forKey: path) == nil, "\(path)")
      return .enter
    }
    #expect(found.count == 20 + 20 + 30 + 1)
    #expect(found["d7"]?.map(\.trees) == [Array(0..<60)])
    #expect(found["d7/file 7"]?.map(\.trees) == [Array(0..<60)])
    #expect(found["e3"]?.map(\.trees) == [[3, 33]])
    #expect(found["changed"]?.map(\.trees) == (0..<30).map { [2 * $0, 2 * $0 + 1] })
  }

  /// Memory is used only for distinct entries, so a large directory of a thousand snapshots stays
  /// in memory and is not read again after each of its subdirectories.
  @Test func mergedDirectoriesCountDistinctEntriesOnly() throws {
    let common = (0..<500).map { TreeEntry(name: ByteString("name \($0)"), node: .fifo) }
      .sorted { $0.name < $1.name }
    var merged = JointWalk.MergedDirectories()
    for number in 0..<1000 {
      let own = TreeEntry(name: "own", node: .fifo, modified: Timestamp(seconds: Int64(number) + 9))
      try merged.add(Self.treeBytes(common + [own]), of: number)
    }
    let size = (common + [TreeEntry(name: "own", node: .fifo)])
      .reduce(0) { $0 + TreeEntryCoding.encode($1).count }
    #expect(merged.size >= size && merged.size <= size + 1000 * 20)
    #expect(merged.finish(after: "name 98") && !merged.finish(after: nil))
    #expect(merged.name == "name 99" && merged.remove("own") == nil)
    #expect(merged.remove("name 99") != nil && merged.name == "own")
  }

  private static func treeBytes(_ entries: [TreeEntry]) -> RepositoryReader.TreeBytes {
    let bytes = TreeCoding.encodePage(entries.map { TreeEntryCoding.encode($0) })
    return RepositoryReader.TreeBytes(
      tree: TreeReference(Blake2b.hash(bytes)), frame: bytes, range: bytes.indices)
  }
}

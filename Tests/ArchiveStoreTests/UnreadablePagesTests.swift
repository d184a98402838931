import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// Directories of several pages, some of which are lost: each reader returns the entries of the
/// other pages, and reports between which names entries are lost.
struct LostPagesTests {
  private let storage = MemoryStorage()
  private let repository: Repository

  init() throws { repository = try Repository.create(in: storage, program: "test") }

  /// Stores a directory of these pages, some of which are named in the table but not stored.
  private func store(
    _ pages: [[TreeEntry]], lost: Set<Int>, _ session: WritingSession
  ) throws -> TreeReference {
    let table = try pages.enumerated().map { number, entries in
      let bytes = TreeCoding.encodePage(entries.map { TreeEntryCoding.encode($0) })
      if !lost.contains(number) { _ = try session.storeBytes(bytes, kind: .tree) }
      return TreeBlob.Page(
        last: try #require(entries.last).name, digest: Blake2b.hash(bytes))
    }
    return TreeReference(try session.storeBytes(TreeCoding.encodeTable(table), kind: .tree).digest)
  }

  private func finish(
    _ session: WritingSession, _ tree: TreeReference
  ) throws -> RepositoryReader {
    _ = try session.finish(repository.makeSnapshot(tree))
    return try repository.beginReading()
  }

  /// Makes four pages of three entries each, with a directory that contains a file in the middle.
  /// Pages of different sets have different bytes.
  private func pages(_ below: TreeReference, set: Int) -> [[TreeEntry]] {
    ["a", "b", "c", "d"].map { page in
      (0..<3).map { number in
        TreeEntry(
          name: ByteString("\(page)\(number)"), node: number == 1 ? .directory(below) : .fifo,
          modified: Timestamp(seconds: Int64(set)))
      }
    }
  }

  /// Returns one finding for each run of consecutive lost pages.
  private func runs(_ lost: Set<Int>) -> [UnreadableNames] {
    var runs: [UnreadableNames] = []
    let last: [ByteString] = ["a2", "b2", "c2", "d2"]
    for page in lost.sorted() {
      let names = UnreadableNames(after: page > 0 ? last[page - 1] : nil, last: last[page])
      if lost.contains(page - 1), let before = runs.popLast() {
        runs.append(UnreadableNames(after: before.after, last: names.last))
      } else {
        runs.append(names)
      }
    }
    return runs
  }

  @Test(arguments: [0, 32 << 20]) func walkContinuesAfterALostPage(budget: Int) throws {
    let session = try repository.beginWriting()
    let below = try session.storeTree([TreeEntry(name: "in", node: .fifo)])
    let sets = (0..<16).map { set in Set((0..<4).filter { set & 1 << $0 != 0 }) }
    let trees = try sets.enumerated().map { set, lost in
      try store(pages(below, set: set), lost: lost, session)
    }
    let reader = try finish(session, below)
    for (set, lost) in sets.enumerated() {
      let known = pages(below, set: set).enumerated().filter { !lost.contains($0.offset) }
      let names = known.flatMap(\.element).flatMap { entry in
        entry.node == .fifo ? [entry.name] : [entry.name, entry.name.appending("in")]
      }
      var (paths, found): ([ByteString], [UnreadableNames]) = ([], [])
      try reader.walkPastDamage(trees[set], budget: budget) { path, finding in
        switch finding {
        case .entry: paths.append(path)
        case .damage(let error): Issue.record("\(error)")
        case .lost(let names, let error):
          #expect(path.isEmpty && error.code == .missing)
          #expect(error.reason.contains("'\(names.last)'"))
          #expect(
            paths.allSatisfy { !(names.after ?? "" < $0.components[0]) }, "reported in name order")
          found.append(names)
        }
        return .enter
      }
      #expect(paths == names && found == runs(lost))
      let error = storeError { try reader.walk(trees[set]) { _, _ in .enter } }
      #expect((error?.kind == .damaged) == !lost.isEmpty)
      #expect(try reader.countPaths(below: trees[set]) == UInt64(names.count))
      var entries = 0
      let failure = try reader.forEachEntry(of: trees[set]) { _ in entries += 1 }
      #expect((failure == nil) == lost.isEmpty)
      #expect(entries == known.count * 3)
    }
  }

  /// The result of a lookup is unknown only if the page that would contain the name is lost.
  @Test func lookupReadsOnlyThePageOfTheName() throws {
    let session = try repository.beginWriting()
    let below = try session.storeTree([TreeEntry(name: "in", node: .fifo)])
    let tree = try store(pages(below, set: 1), lost: [0, 2], session)
    let reader = try finish(session, below)
    for name: ByteString in ["a", "a0", "a1/in", "a2", "b3", "c0", "c1/in", "c2"] {
      let error = storeError { try reader.entry(at: name, in: tree) }
      #expect(error?.kind == .damaged, "\(name)")
    }
    for name: ByteString in ["b0", "b1/in", "b2", "d2"] {
      #expect(try reader.entry(at: name, in: tree)?.name == name.lastComponent)
    }
    for name: ByteString in ["b00", "b1/no", "d00", "d3", "e"] {
      #expect(try reader.entry(at: name, in: tree) == nil, "\(name)")
    }
  }

  /// Two trees that share some pages, with some pages lost: the known entries of each tree are
  /// returned, and those that the other tree may have lost are marked.
  @Test(arguments: 0..<60) func jointWalkReportsLostPages(seed: Int) throws {
    var random = SeededBytes(seed: UInt64(seed) + 500)
    let session = try repository.beginWriting()
    var trees: [TreeReference] = []
    let common = (0..<40).map { number in
      TreeEntry(name: ByteString("n\(number + 10)"), node: .fifo)
    }
    for tree in 0..<2 {
      // Most entries and some pages are the same in both trees.
      let entries = common.compactMap { entry -> TreeEntry? in
        guard random.number(0..<9) == 0 else { return entry }
        if random.number(0..<2) == 0 { return nil }
        var other = entry
        other.modified = Timestamp(seconds: Int64(tree + 1))
        return other
      }
      let pages = entries.chunked { $0.name.bytes.last == UInt8(ascii: "4") }
      let bad = Set(pages.indices.filter { _ in random.number(0..<3) == 0 })
      trees.append(try store(pages, lost: bad, session))
    }
    let reader = try finish(session, session.storeTree([]))
    var known: [[ByteString: TreeEntry]] = [[:], [:]]
    var lost: [[UnreadableNames]] = [[], []]
    for tree in 0..<2 {
      try reader.walkPastDamage(trees[tree]) { path, finding in
        if case .entry(let entry) = finding { known[tree][path] = entry }
        if case .lost(let names, _) = finding { lost[tree].append(names) }
        return .enter
      }
    }
    for differencesOnly in [false, true] {
      var reported: [[ByteString: TreeEntry]] = [[:], [:]]
      var before: ByteString = ""
      try reader.walkTogether(trees, differencesOnly: differencesOnly) { path, found in
        guard case .entries(let entries, let unknown) = found else { return .enter }
        #expect(before < path)
        before = path
        for entry in entries { for tree in entry.trees { reported[tree][path] = entry.entry } }
        for tree in 0..<2 where known[tree][path] == nil {
          let isLost = lost[tree].contains { $0.contains(path) }
          // If the name may be on a page that is lost in both trees, neither of them has it.
          if differencesOnly, !unknown.contains(tree) { continue }
          #expect(unknown.contains(tree) == isLost, "\(path) in \(tree)")
        }
        return .enter
      }
      for tree in 0..<2 {
        let other = known[1 - tree]
        let wanted = known[tree].filter { !differencesOnly || other[$0.key] != $0.value }
        #expect(reported[tree] == wanted)
      }
    }
  }

  /// A check also finds damage that follows a lost page.
  @Test func checkReadsAllPages() throws {
    let session = try repository.beginWriting()
    let content = Content(size: 3, level: 0, pieces: [.blob(.some, length: 3)])
    let pages = [
      [TreeEntry(name: "a", node: .fifo)], [TreeEntry(name: "b", node: .fifo)],
      [TreeEntry(name: "c", node: .file(content)), TreeEntry(name: "d", node: .fifo)],
    ]
    let tree = try store(pages, lost: [1], session)
    let stored = try session.finish(repository.makeSnapshot(tree))
    let found = try Checked(repository, .trees)
    #expect(found.costs == ["": [stored.id], "c": [stored.id]])
    #expect(found.report.entries == 3)
    let isNamed = found.findings.contains {
      guard case .cost(_, _, let reason) = $0 else { return false }
      return reason.contains("the names after 'a' up to 'b'")
    }
    #expect(isNamed, "\(found.findings)")
  }
}

extension [TreeEntry] {
  /// Splits the list after each element for which `isEnd` is true.
  fileprivate func chunked(after isEnd: (TreeEntry) -> Bool) -> [[TreeEntry]] {
    var pieces: [[TreeEntry]] = [[]]
    for entry in self {
      pieces[pieces.count - 1].append(entry)
      if isEnd(entry) { pieces.append([]) }
    }
    return pieces.filter { !$0.isEmpty }
  }
}

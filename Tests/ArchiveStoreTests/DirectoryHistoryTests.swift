import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// The versions of a directory in many snapshots: incremental decoding of pages, and walks and
/// lookups over all versions, compared with simple implementations.
struct DirectoryHistoryTests {
  private let repository: Repository

  init() throws { repository = try Repository.create(in: MemoryStorage(), program: "test") }

  /// A directory that changes a little in each version.
  private struct Directory {
    var entries: [ByteString: TreeEntry] = [:]
    /// Entries of earlier versions.
    private var earlier: [TreeEntry] = []
    private let below: [TreeReference]

    init(_ count: Int, below: [TreeReference], _ random: inout Seeded) {
      self.below = below
      for _ in 0..<count { put(makeEntry(&random)) }
    }

    var sorted: [TreeEntry] { entries.values.sorted { $0.name < $1.name } }

    mutating func change(_ random: inout Seeded) {
      for _ in 0..<Int.random(in: 0...3, using: &random) {
        switch Int.random(in: 0..<4, using: &random) {
        case 0: put(makeEntry(&random))
        case 1:
          if let name = entries.keys.sorted().randomElement(using: &random) {
            entries[name] = nil
          }
        case 2:
          if var entry = sorted.randomElement(using: &random) {
            entry.modified = Timestamp(seconds: Int64.random(in: 1...3, using: &random))
            put(entry)
          }
        default: if let entry = earlier.randomElement(using: &random) { put(entry) }
        }
      }
    }

    private mutating func put(_ entry: TreeEntry) {
      entries[entry.name] = entry
      earlier.append(entry)
    }

    private func makeEntry(_ random: inout Seeded) -> TreeEntry {
      let node: Node =
        switch Int.random(in: 0..<4, using: &random) {
        case 0: .symlink(target: ByteString(random.fileName()))
        case 1 where !below.isEmpty: .directory(below.randomElement(using: &random) ?? below[0])
        case 2:
          .file(
            Content(size: 5, level: 0, pieces: [.blob(Blake2b.hash(random.bytes(9)), length: 5)]))
        default: .fifo
        }
      let names = "abcdefghijklmnop".map { ByteString(String($0)) }
      let name =
        Bool.random(using: &random)
        ? ByteString(random.fileName(longest: 3)) : names.randomElement(using: &random) ?? "a"
      return TreeEntry(
        name: name, node: node, owner: UInt32.random(in: 0...2, using: &random),
        modified: Timestamp(seconds: Int64.random(in: 1...9, using: &random)))
    }
  }

  private static func encode(_ entries: [TreeEntry]) -> [UInt8] {
    TreeCoding.encodePage(entries.map { TreeEntryCoding.encode($0) })
  }

  private static func plain(_ bytes: [UInt8]) throws -> [TreeEntry]? {
    guard case .page(let entries) = try TreeCoding.decode(bytes, object: "the page") else {
      return nil
    }
    return entries
  }

  // MARK: - Pages

  /// Incremental decoding returns the same entries as complete decoding, finds the unchanged ones,
  /// and refuses bytes that violate the format with the same error.
  @Test func pagesAreDecodedAgainstTheVersionBefore() throws {
    var random = Seeded.fresh()
    for _ in 0..<30 {
      var directory = Directory(Int.random(in: 0...30, using: &random), below: [], &random)
      var (page, entries) = (EncodedPage.empty, [TreeEntry]())
      for _ in 0..<30 {
        var bytes = Self.encode(directory.sorted)
        if Int.random(in: 0..<3, using: &random) == 0 {
          let index = Int.random(in: bytes.indices, using: &random)
          bytes[index] = UInt8.random(in: 0...255, using: &random)
        }
        let padding = [UInt8](repeating: 0xF6, count: Int.random(in: 0...4, using: &random))
        let range = padding.count..<(padding.count + bytes.count)
        let wanted = Result { try Self.plain(bytes) }
        let before = entries
        let found = Result {
          try page.next(padding + bytes + padding, range: range, object: "the page") {
            before[$0].name
          }
        }
        if case .success(let wanted?) = wanted {
          let version = try found.get()
          var others = version.others.makeIterator()
          entries = try version.known.map { number in
            if let number { return before[number] }
            let next = others.next()
            let other = try #require(next)
            #expect(!before.contains(other))
            return other
          }
          #expect(entries == wanted && others.next() == nil)
          #expect(version.page.count == wanted.count)
          page = version.page
        } else if case .failure(let error) = wanted, !TreeCoding.isTable(bytes, bytes.indices) {
          #expect(throws: try #require(error as? StoreError)) { try found.get() }
        }
        directory.change(&random)
      }
    }
  }

  /// A name is found on a page if and only if complete decoding finds it.
  @Test func namesAreFoundWithoutDecodingThePage() throws {
    var random = Seeded.fresh()
    for count in [0, 1, 2, 40] {
      let directory = Directory(count, below: [], &random)
      let bytes = Self.encode(directory.sorted)
      let names =
        directory.entries.keys + (0..<50).map { _ in ByteString(random.fileName(longest: 2)) }
      for name in names {
        let found = try TreeCoding.entry(
          named: name, in: bytes, range: bytes.indices, object: "the page")
        #expect(found == directory.entries[name])
      }
    }
    let unnamed: [UInt8] = [0xA1, 0x00, 0x81, 0xA1, 0x01, 0x03]
    for bytes in [unnamed, [0xA1, 0x02, 0x80], [0xA1, 0x00, 0x80], [0xA1, 0x00, 0x81, 0xFF]] {
      #expect(throws: StoreError.self) {
        _ = try TreeCoding.entry(named: "a", in: bytes, range: bytes.indices, object: "the page")
      }
    }
  }

  // MARK: - Walks

  /// Stores a directory as one page or as two.
  private func store(
    _ entries: [TreeEntry], _ mayBeTable: Bool, _ session: WritingSession,
    _ random: inout Seeded
  ) throws -> TreeReference {
    guard mayBeTable, entries.count > 3, Int.random(in: 0..<6, using: &random) == 0 else {
      return try session.storeTree(entries)
    }
    let cut = Int.random(in: 1..<entries.count, using: &random)
    let table = try [entries[..<cut], entries[cut...]].map { part in
      let bytes = Self.encode(Array(part))
      _ = try session.storeBytes(bytes, kind: .tree)
      return TreeBlob.Page(last: try #require(part.last).name, digest: Blake2b.hash(bytes))
    }
    return TreeReference(try session.storeBytes(TreeCoding.encodeTable(table), kind: .tree).digest)
  }

  /// A walk of many versions finds, at each path, the distinct entries and the versions that have
  /// them. This holds for versions with several pages, for missing versions, and without memory for
  /// the outer directories. If all versions have one page, the entries are in the order of their
  /// first version.
  @Test(arguments: [0, TreeWalk.budget], [false, true]) func walksOfManyVersionsEqualPlainOnes(
    budget: Int, hasTables: Bool
  ) throws {
    var random = Seeded.fresh()
    for _ in 0..<6 {
      let session = try repository.beginWriting()
      var inner = Directory(12, below: [], &random)
      let below = try (0..<5).map { _ in
        inner.change(&random)
        return try store(inner.sorted, hasTables, session, &random)
      }
      var directory = Directory(25, below: below, &random)
      var trees: [TreeReference?] = []
      for _ in 0..<40 {
        let isLost = Int.random(in: 0..<10, using: &random) == 0
        trees.append(isLost ? nil : try store(directory.sorted, hasTables, session, &random))
        directory.change(&random)
      }
      let root = try session.storeTree([])
      _ = try session.finish(repository.makeSnapshot(root, sequence: UInt64(trees.count)))
      let reader = try repository.beginReading()
      let lost = TreeReference(Blake2b.hash(random.bytes(8)))
      var found = try joint(trees.map { $0 ?? lost }, reader, budget)
      if hasTables {
        found = found.mapValues { $0.sorted { $0.trees[0] < $1.trees[0] } }
      }
      #expect(try found == separate(trees, reader))
    }
  }

  private func joint(
    _ trees: [TreeReference], _ reader: RepositoryReader, _ budget: Int
  ) throws -> [ByteString: [JointWalk.Entry]] {
    var found: [ByteString: [JointWalk.Entry]] = [:]
    var walk = JointWalk(reader, trees, differencesOnly: false, budget: budget)
    try walk.run { path, finding in
      if case .entries(let entries, _) = finding { found[path] = entries }
      return .enter
    }
    return found
  }

  private func separate(
    _ trees: [TreeReference?], _ reader: RepositoryReader
  ) throws -> [ByteString: [JointWalk.Entry]] {
    var found: [ByteString: [(entry: TreeEntry, trees: [Int])]] = [:]
    for (number, tree) in trees.enumerated() {
      guard let tree else { continue }
      try reader.walk(tree) { path, entry in
        if let index = found[path]?.firstIndex(where: { $0.entry == entry }) {
          found[path]?[index].trees.append(number)
        } else {
          found[path, default: []].append((entry, [number]))
        }
        return .enter
      }
    }
    return found.mapValues { $0.map { JointWalk.Entry(entry: $0.entry, trees: $0.trees) } }
  }
}

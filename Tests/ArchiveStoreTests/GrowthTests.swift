import Codecs
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore

/// The growth by each snapshot, the data that only this snapshot needs, and the bytes that its
/// removal frees.
struct GrowthTests {
  /// A directory of files and directories by name.
  private indirect enum Node {
    case file([UInt8])
    case directory([String: Node])

    /// Stores the node and returns its entry.
    func entry(
      _ name: String, at path: ByteString, _ writer: ContentWriter, _ session: WritingSession
    ) throws -> TreeEntry {
      switch self {
      case .file(let bytes):
        let content = try writer.storeFile(logicalPath: path, bytes: bytes)
        var entry = TreeEntry(name: ByteString(name), node: .file(content))
        if bytes.count % 7 == 0 {
          entry.attributes = [
            try writer.makeAttribute(name: "user.note", value: Array(bytes.prefix(900)) + bytes)
          ]
        }
        return entry
      case .directory(let below):
        let entries = try below.sorted { ByteString($0.key) < ByteString($1.key) }.map {
          try $1.entry($0, at: path.appending(ByteString($0)), writer, session)
        }
        return TreeEntry(
          name: ByteString(name), node: .directory(try session.storeTree(entries)))
      }
    }
  }

  private static let classes = [
    ClassRun(path: "apps/a/data", name: "user-data"),
    ClassRun(path: "apps/a/data/cache", name: "cache"), ClassRun(path: "apps/b", name: "support"),
  ]

  @discardableResult
  private static func backUp(
    _ root: Node, to repository: Repository, sequence: Int
  ) throws -> StoredSnapshot {
    let session = try repository.beginWriting()
    let writer = try session.makeWriter()
    let entry = try root.entry("root", at: "", writer, session)
    try writer.flush()
    guard case .directory(let tree) = entry.node else { throw Unexpected() }
    var snapshot = repository.makeSnapshot(tree, sequence: UInt64(sequence))
    snapshot.classes = classes
    return try session.finish(snapshot)
  }

  private struct Unexpected: Error {}

  private static func growth(_ repository: Repository) throws -> RepositoryGrowth {
    try repository.growth(of: repository.heads()) { path, error in
      Issue.record("\(path): \(error)")
    }
  }

  // MARK: - Reference implementation

  /// Returns all blobs that a tree needs.
  private static func blobs(
    of tree: TreeReference, _ reader: RepositoryReader
  ) throws -> Set<BlobID> {
    var blobs: Set<BlobID> = [BlobID(kind: .tree, digest: tree.digest)]
    if case .table(let pages) = try reader.openDirectory(tree).blob {
      for page in pages { blobs.insert(BlobID(kind: .tree, digest: page.digest)) }
    }
    for entry in try reader.entries(of: tree) {
      for attribute in entry.attributes {
        if case .blob(let digest, _) = attribute.value {
          blobs.insert(BlobID(kind: .data, digest: digest))
        }
      }
      switch entry.node {
      case .directory(let below): blobs.formUnion(try Self.blobs(of: below, reader))
      case .file(let content):
        var level = content.level
        var pieces = content.pieces
        while true {
          var below: [Piece] = []
          for case .blob(let digest, let length) in pieces {
            blobs.insert(BlobID(kind: level == 0 ? .data : .list, digest: digest))
            if level > 0 {
              below += try reader.pieces(ofList: digest, level: level - 1, length: length)
            }
          }
          if level == 0 { break }
          (level, pieces) = (level - 1, below)
        }
      default: break
      }
    }
    return blobs
  }

  private static func lengths(_ repository: Repository) throws -> [BlobID: UInt64] {
    let index = try LoadedIndex.loadAll(from: repository.storage)
    var lengths: [BlobID: UInt64] = [:]
    for object in index.objects {
      for number in 0..<object.blobs {
        if let record = object.record(number) { lengths[record.id] = UInt64(record.length) }
      }
    }
    return lengths
  }

  // MARK: - Random histories

  private static func change(_ root: inout [String: Node], _ random: inout SeededBytes) {
    let (app, child) = (random.number(0..<3), random.number(0..<2))
    let parts = ["apps", ["a", "b", "c"][app], ["data", "x"][child]]
    let name = ["cache", "1", "2", "3", "4"][random.number(0..<5)]
    let cache = random.number(0..<2) == 0 ? ["cache"] : []
    change(&root, at: (parts + cache + [name])[...], &random)
  }

  private static func change(
    _ directory: inout [String: Node], at path: ArraySlice<String>, _ random: inout SeededBytes
  ) {
    guard let name = path.first else { return }
    guard path.count > 1 else {
      switch random.number(0..<6) {
      case 0: directory[name] = nil
      // Content may repeat at another path or at a later time.
      case 1, 2:
        let seed = UInt64(random.number(0..<8))
        directory[name] = .file(SeededBytes.some(seed: seed, count: 700))
      default: directory[name] = .file(random.bytes(random.number(1..<3000)))
      }
      return
    }
    var below: [String: Node] = [:]
    if case .directory(let found) = directory[name] { below = found }
    change(&below, at: path.dropFirst(), &random)
    directory[name] = .directory(below)
  }

  /// Makes a repository of random snapshots. Some are equal, and one has a large directory.
  private static func history(
    _ random: inout SeededBytes
  ) throws -> (repository: Repository, snapshots: [StoredSnapshot]) {
    let repository = try Repository.create(in: MemoryStorage(), program: "test")
    var root: [String: Node] = [:]
    for _ in 0..<20 { change(&root, &random) }
    if random.number(0..<2) == 0 {
      let many = (0..<1500).map { ("file-\($0)", Node.file(Array("\($0 % 9)".utf8))) }
      root["folders"] = .directory(["many": .directory(Dictionary(uniqueKeysWithValues: many))])
    }
    var snapshots: [StoredSnapshot] = []
    for sequence in 1...random.number(2..<9) {
      snapshots.append(try backUp(.directory(root), to: repository, sequence: sequence))
      for _ in 0..<random.number(0..<5) { change(&root, &random) }
    }
    return (repository, snapshots)
  }

  @Test(arguments: 0..<25) func growthEqualsThatOfAPlainReference(_ seed: Int) throws {
    var random = SeededBytes(seed: UInt64(seed))
    let (repository, snapshots) = try Self.history(&random)
    let growth = try Self.growth(repository)
    let reader = try repository.beginReading()
    let lengths = try Self.lengths(repository)
    let needs = try snapshots.map { try Self.blobs(of: $0.snapshot.tree, reader) }
    #expect(growth.rows.map(\.head.id) == snapshots.map(\.id))
    #expect(growth.damaged.isEmpty && growth.unreadable == 0 && growth.lostBlobs == 0)
    var older: Set<BlobID> = []
    for (number, row) in growth.rows.enumerated() {
      let added = needs[number].subtracting(older)
      older.formUnion(needs[number])
      let others = needs.indices.filter { $0 != number }.reduce(into: Set()) {
        $0.formUnion(needs[$1])
      }
      let alone = needs[number].subtracting(others)
      #expect(row.added.blobs == added.count && row.alone.blobs == alone.count)
      #expect(row.added.bytes == added.reduce(0) { $0 + (lengths[$1] ?? 0) })
      #expect(row.alone.bytes == alone.reduce(0) { $0 + (lengths[$1] ?? 0) })
      let parts = row.parts.reduce(into: RepositoryGrowth.Amount()) { $0.add($1.amount) }
      #expect(parts == row.added)
    }
    // Without a prune, every blob is needed and every frame is used completely.
    #expect(growth.total.blobs == lengths.count)
    let stored = try RepositoryPrune(repository).plan().plan.packs.map(\.used).clampedSum
    #expect(growth.total.stored <= stored && stored - growth.total.stored <= UInt64(lengths.count))
  }

  /// The predicted bytes equal those that a removal and a prune free.
  @Test(arguments: 0..<25) func removalFreesWhatIsPredicted(_ seed: Int) throws {
    var random = SeededBytes(seed: UInt64(100 + seed))
    let (repository, snapshots) = try Self.history(&random)
    let growth = try Self.growth(repository)
    for row in growth.rows {
      let freed = try RepositoryPrune(repository).freed(byRemoving: [row.head.id])
      #expect(freed.blobs == row.alone.blobs && freed.bytes == row.alone.bytes)
      let difference = Int(freed.stored) - Int(row.alone.stored)
      #expect(difference.magnitude <= freed.blobs, "rounding, at most a byte for each blob")
    }
    let removed = Set(snapshots.map(\.id).filter { _ in random.number(0..<2) == 0 })
    let freed = try RepositoryPrune(repository, workers: 2).freed(byRemoving: removed)
    var request = PruneRequest()
    (request.maxUnused, request.smallPacks) = (.bytes(0), nil)
    request.mayRemoveAll = removed.count == snapshots.count
    let plan = try RepositoryPrune(repository, request).plan(without: removed).plan
    let unused = plan.packs.map(\.unused).clampedSum
    #expect(unused == freed.stored)
    let before = try Self.lengths(repository)
    for id in removed { try repository.storage.remove(RepositoryLayout.tested.snapshot(id)) }
    _ = try RepositoryPrune(repository, request).run()
    let after = try Self.lengths(repository)
    #expect(before.count - after.count == freed.blobs)
    #expect(before.values.clampedSum - after.values.clampedSum == freed.bytes)
    #expect(try Self.growth(repository).total.blobs == after.count)
  }

  // MARK: - Owners and classes

  @Test func partsAreByOwnerAndClass() throws {
    let repository = try Repository.create(in: MemoryStorage(), program: "test")
    func root(_ note: Int, _ cached: Int) -> Node {
      .directory([
        "apps": .directory([
          "a": .directory([
            "data": .directory([
              "note": .file(SeededBytes.some(seed: 1, count: note)),
              "cache": .directory(["x": .file(SeededBytes.some(seed: 2, count: cached))]),
            ])
          ]),
          "b": .directory(["y": .file(SeededBytes.some(seed: 3, count: 30))]),
        ])
      ])
    }
    try Self.backUp(root(1000, 500), to: repository, sequence: 1)
    try Self.backUp(root(1002, 500), to: repository, sequence: 2)
    let rows = try Self.growth(repository).rows
    func bytes(_ row: Int, _ owner: ByteString, _ name: String) -> UInt64? {
      rows[row].parts.first { $0.owner == owner && $0.dataClass == name }?.amount.bytes
    }
    #expect(bytes(0, "apps/a", "user-data") == 1000 && bytes(0, "apps/a", "cache") == 500)
    #expect(bytes(0, "apps/b", "support") == 30)
    #expect(bytes(1, "apps/a", "user-data") == 1002 && bytes(1, "apps/a", "cache") == nil)
    #expect(bytes(1, "apps/b", "support") == nil && bytes(1, "apps/b", "directories") == nil)
    #expect(bytes(1, "apps/a", "directories") != nil && bytes(1, "", "directories") != nil)
    #expect(rows[0].alone.bytes > 1000 && rows[1].alone.bytes > 1002)
    #expect(rows[0].alone.bytes < 1500)
  }

  // MARK: - Damage

  @Test func damagedTreesAreReportedAndNotCounted() throws {
    var random = SeededBytes(seed: 9)
    let (repository, snapshots) = try Self.history(&random)
    let tree = BlobID(kind: .tree, digest: snapshots[0].snapshot.tree.digest)
    let pack = try #require(
      try LoadedIndex.loadAll(from: repository.storage).objects.lazy
        .compactMap { object in object.find(tree).map { object.pack(Int($0.pack)).id } }.first)
    let memory = try #require(repository.storage.base as? MemoryStorage)
    try memory.change(RepositoryLayout.tested.pack(pack)) { $0[40] ^= 1 }
    var reported: [ByteString] = []
    let growth = try repository.growth(of: repository.heads()) { path, _ in reported.append(path) }
    #expect(growth.unreadable > 0 && reported.count == growth.unreadable)
    try memory.remove(RepositoryLayout.tested.pack(pack))
    #expect(try repository.growth(of: repository.heads()) { _, _ in }.lostBlobs > 0)
  }

  /// Each call of the storage fails in turn: the result is complete, or damage or an error is
  /// reported.
  @Test func failingReadsAreNotMistakenForEmptyTrees() throws {
    var random = SeededBytes(seed: 11)
    let (source, _) = try Self.history(&random)
    let storage = WatchedStorage(source.storage, passing: WatchedStorage.isFurtherPackDirectory)
    let repository = try Repository.open(storage)
    let expected = try Self.growth(repository).rows.map(\.alone)
    let calls = storage.calls
    for call in Sampling.steps(5, upTo: calls, "growth") {
      storage.fail(at: call)
      let found = try? repository.growth(of: repository.heads()) { _, _ in }
      if let found, found.damaged.isEmpty, found.unreadable == 0 {
        #expect(found.rows.map(\.alone) == expected, "call \(call)")
      }
    }
  }
}

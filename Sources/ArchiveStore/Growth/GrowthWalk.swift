internal import SystemIO

/// Walks snapshots, the oldest first, and assigns each blob to the first snapshot that needs it.
struct GrowthWalk {
  private let reader: RepositoryReader
  private let index: PruneIndex
  private let frames: [FrameTotals]
  private var graph: GrowthGraph
  /// 1 for each entry of a blob that was found.
  private var found: EntryNumbers
  /// The trees of the snapshots in the growth.
  private var roots: [PruneIndex.Entry?] = []
  /// The trees and lists to read.
  private var pending: [Pending] = []
  /// The data of the current snapshot by owner and class.
  private var amounts: [RepositoryGrowth.PartKey: RepositoryGrowth.Amount] = [:]
  private var lostBlobs = 0

  /// A tree or a list to read.
  private struct Pending {
    let entry: PruneIndex.Entry
    let blob: BlobID
    let location: Location
    /// The level of a list; nil for a tree.
    var level: UInt8?
    /// The bytes of the file that a list covers.
    var length: UInt64 = 0
  }

  /// A path with its owner and class.
  private struct Location {
    let path: ByteString
    let depth: Int
    let owner: ByteString
    /// Nil above the first path with a class.
    let dataClass: String?

    init() { (path, depth, owner, dataClass) = ("", 0, "", nil) }

    /// The location of an entry in a directory.
    init(_ name: ByteString, in directory: Location, classes: [ByteString: String]) {
      path = directory.path.appending(name)
      depth = directory.depth + 1
      owner = depth <= 2 ? path : directory.owner
      dataClass = classes[path] ?? directory.dataClass
    }
  }

  /// Prepares a walk.
  init(_ reader: RepositoryReader, _ index: PruneIndex) {
    (self.reader, self.index) = (reader, index)
    frames = index.objects.map { FrameTotals(of: $0) }
    graph = GrowthGraph(index.objects)
    found = EntryNumbers(index.objects)
  }

  /// Adds a snapshot and what it needs in addition to the earlier ones. The snapshot itself is read
  /// only if its tree is new.
  mutating func add(
    _ head: SnapshotHead, to growth: inout RepositoryGrowth, watch: ReadingWatch?,
    unreadable report: (ByteString, StoreError) -> Void
  ) throws {
    let root = BlobID(kind: .tree, digest: head.tree.digest)
    var row = RepositoryGrowth.Row(head: head)
    var classes: [ByteString: String] = [:]
    if index.find(root).map({ !graph.contains($0.entry) }) ?? true {
      guard
        let stored = reader.repository.snapshot(
          ifReadable: head.id, skip: { growth.damaged.append($0) })
      else { return }
      classes = Dictionary(
        stored.snapshot.classes.map { ($0.path, $0.name) }, uniquingKeysWith: { $1 })
    }
    (amounts, lostBlobs) = ([:], 0)
    var references: [PruneIndex.Entry] = []
    refer(Reference(root, at: Location(), as: RepositoryGrowth.directories), &references)
    roots.append(references.first)
    while let next = pending.popLast() {
      try watch?.checkCancellation()
      do throws(StoreError) {
        try read(next, classes)
      } catch {
        guard error.kind == .damaged else { throw error }
        growth.unreadable += 1
        report(next.location.path, error)
      }
    }
    row.parts = RepositoryGrowth.parts(amounts)
    for part in row.parts { row.added.add(part.amount) }
    growth.lostBlobs += lostBlobs
    growth.rows.append(row)
  }

  /// Sets the data that each snapshot alone needs.
  func findAlone(_ growth: inout RepositoryGrowth) {
    graph.owners(of: roots, index.objects).forEachNumber { entry, owner in
      guard owner != GrowthGraph.shared, let amount = amount(of: entry) else { return }
      growth.rows[Int(owner) - 1].alone.add(amount)
    }
  }

  private func amount(of entry: PruneIndex.Entry) -> RepositoryGrowth.Amount? {
    guard let record = index.objects[Int(entry.object)].record(Int(entry.number)) else {
      return nil
    }
    var amount = RepositoryGrowth.Amount()
    amount.blobs = 1
    amount.bytes = UInt64(record.length)
    amount.stored = frames[Int(entry.object)].stored(record)
    return amount
  }
}

// MARK: - References

extension GrowthWalk {
  /// A reference to a blob, with its location and the class that it counts for.
  private struct Reference {
    let blob: BlobID
    let location: Location
    let dataClass: String
    var level: UInt8?
    var length: UInt64 = 0

    init(_ blob: BlobID, at location: Location, as dataClass: String) {
      (self.blob, self.location, self.dataClass) = (blob, location, dataClass)
    }
  }

  /// Counts a blob that is found for the first time, and notes a new tree or list to be read.
  private mutating func refer(_ reference: Reference, _ references: inout [PruneIndex.Entry]) {
    guard let entry = index.find(reference.blob)?.entry else {
      lostBlobs += 1
      return
    }
    references.append(entry)
    if found[entry] == 0, let amount = amount(of: entry) {
      found[entry] = 1
      let key = RepositoryGrowth.PartKey(
        owner: reference.location.owner, dataClass: reference.dataClass)
      amounts[key, default: RepositoryGrowth.Amount()].add(amount)
    }
    guard reference.blob.kind != .data, graph.insert(entry) else { return }
    pending.append(
      Pending(
        entry: entry, blob: reference.blob, location: reference.location, level: reference.level,
        length: reference.length))
  }

  private mutating func read(
    _ next: Pending, _ classes: [ByteString: String]
  ) throws(StoreError) {
    var references: [PruneIndex.Entry] = []
    let first = pending.count
    if let level = next.level {
      let pieces = try reader.pieces(
        ofList: next.blob.digest, level: level, length: next.length)
      refer(pieces, level: level, at: next.location, &references)
    } else {
      let tree = TreeReference(next.blob.digest)
      switch try reader.openDirectory(tree).blob {
      case .table(let pages):
        for page in pages {
          let id = BlobID(kind: .tree, digest: page.digest)
          refer(Reference(id, at: next.location, as: RepositoryGrowth.directories), &references)
        }
      case .page(let entries):
        for entry in entries {
          refer(entry, at: Location(entry.name, in: next.location, classes: classes), &references)
        }
      }
    }
    graph.set(references, of: next.entry)
    // In the order of the names.
    pending[first...].reverse()
  }

  private mutating func refer(
    _ entry: TreeEntry, at location: Location, _ references: inout [PruneIndex.Entry]
  ) {
    let dataClass = location.dataClass ?? "unknown"
    for attribute in entry.attributes {
      guard case .blob(let digest, _) = attribute.value else { continue }
      refer(
        Reference(BlobID(kind: .data, digest: digest), at: location, as: dataClass), &references)
    }
    switch entry.node {
    case .directory(let tree):
      let id = BlobID(kind: .tree, digest: tree.digest)
      refer(Reference(id, at: location, as: RepositoryGrowth.directories), &references)
    case .file(let content): refer(content.pieces, level: content.level, at: location, &references)
    default: break
    }
  }

  /// Adds the pieces of a file or of a list. Those of a level above 0 are lists themselves.
  private mutating func refer(
    _ pieces: [Piece], level: UInt8, at location: Location, _ references: inout [PruneIndex.Entry]
  ) {
    for piece in pieces {
      guard case .blob(let digest, let length) = piece else { continue }
      let id = BlobID(kind: level == 0 ? .data : .list, digest: digest)
      var reference = Reference(id, at: location, as: location.dataClass ?? "unknown")
      if level > 0 { (reference.level, reference.length) = (level - 1, length) }
      refer(reference, &references)
    }
  }
}

/// A number for each entry of an index: 4 bytes an entry, which can leave memory.
struct EntryNumbers: Sendable {
  private var numbers: [SpillableArray<UInt32>]

  /// Creates zeros.
  init(_ objects: [IndexObject]) {
    numbers = objects.map { SpillableArray(repeating: 0, count: $0.blobs) }
  }

  subscript(entry: PruneIndex.Entry) -> UInt32 {
    get { numbers[Int(entry.object)][Int(entry.number)] }
    set { numbers[Int(entry.object)][Int(entry.number)] = newValue }
  }

  /// Passes the numbers that are not 0.
  func forEachNumber(_ body: (PruneIndex.Entry, UInt32) -> Void) {
    for (object, numbers) in numbers.enumerated() {
      for (entry, number) in numbers.enumerated() where number != 0 {
        body(PruneIndex.Entry(object: UInt32(object), number: UInt32(entry)), number)
      }
    }
  }
}

/// The references of trees and lists to other blobs, by their entries in an index: 8 bytes a
/// reference, which can leave memory. With them a repository is searched several times, and each
/// tree is read once.
struct GrowthGraph: Sendable {
  /// The number of the node of each entry, from 1; 0 if it has none.
  private var numbers: EntryNumbers
  private var nodes = SpillableArray<Node>()
  private var references = SpillableArray<PruneIndex.Entry>()

  /// The references of a tree or a list.
  private struct Node: Sendable, BitwiseCopyable {
    var start = 0
    var count = 0
  }

  /// Creates a graph without references.
  init(_ objects: [IndexObject]) { numbers = EntryNumbers(objects) }

  /// Whether an entry is that of an added tree or list.
  func contains(_ entry: PruneIndex.Entry) -> Bool { numbers[entry] != 0 }

  /// Adds a tree or list without references. Returns false if it was added before.
  mutating func insert(_ entry: PruneIndex.Entry) -> Bool {
    guard numbers[entry] == 0 else { return false }
    nodes.append(Node())
    numbers[entry] = UInt32(nodes.count)
    return true
  }

  /// Sets the references of a tree or list that was added.
  mutating func set(_ found: [PruneIndex.Entry], of entry: PruneIndex.Entry) {
    nodes[Int(numbers[entry]) - 1] = Node(start: references.count, count: found.count)
    references.append(contentsOf: found)
  }

  /// Passes the references of a tree or list.
  func forEachReference(of entry: PruneIndex.Entry, _ body: (PruneIndex.Entry) -> Void) {
    let number = Int(numbers[entry])
    guard number > 0 else { return }
    let node = nodes[number - 1]
    for index in node.start..<(node.start + node.count) { body(references[index]) }
  }

  /// Returns the entries that only one of several trees reaches: for each entry the number of the
  /// tree, from 1, or `shared`. Each tree and list is visited at most twice.
  ///
  /// - Parameter roots: the trees; nil for one that no index object names.
  func owners(of roots: [PruneIndex.Entry?], _ objects: [IndexObject]) -> EntryNumbers {
    var owners = EntryNumbers(objects)
    for (number, root) in roots.enumerated() {
      let owner = UInt32(number + 1)
      var open = root.map { [$0] } ?? []
      while let entry = open.popLast() {
        guard Self.assign(entry, for: owner, in: &owners) else { continue }
        forEachReference(of: entry) { below in
          if contains(below) {
            open.append(below)
          } else {
            _ = Self.assign(below, for: owner, in: &owners)
          }
        }
      }
    }
    return owners
  }

  /// The number of an entry that several trees reach.
  static let shared = UInt32.max

  /// Returns whether the entry has another owner than before.
  private static func assign(
    _ entry: PruneIndex.Entry, for owner: UInt32, in owners: inout EntryNumbers
  ) -> Bool {
    let before = owners[entry]
    if before == owner || before == shared { return false }
    owners[entry] = before == 0 ? owner : shared
    return true
  }
}

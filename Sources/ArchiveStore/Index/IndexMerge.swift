internal import Codecs

/// Several index objects merged into one, with all their packs and entries, each once.
///
/// Entries of a missing pack are omitted if the blob is also in a pack that exists. All others
/// stay, so that lost blobs can still be named. Entries of condemned packs stay as well: only a
/// sweep knows that no snapshot needs them (docs/repository-format.md, "Merging").
///
/// A repair of packs omits all entries of the dropped packs.
///
/// The objects are traversed twice, to count and to write, with about 4 MiB of memory in addition
/// to the pack tables.
struct IndexMerge {
  private let objects: [IndexObject]
  private let packs: [PackTables.Pack]
  /// For each object, the indices of its packs in `packs`.
  private let packNumbers: [[UInt32]]
  private let isPresent: [Bool]
  /// For each pack, whether all its entries are dropped.
  private let isDropped: [Bool]
  /// For each pack, whether any of its entries stays.
  private var isNamed: [Bool]

  /// Prepares to merge. Returns nil if the objects contradict each other about a pack, which a
  /// check reports.
  init?(
    _ objects: [IndexObject], without dropped: Set<Digest> = [],
    isPresent: (Digest) throws(StoreError) -> Bool
  ) throws(StoreError) {
    var found: [Digest: PackTables.Pack] = [:]
    for object in objects {
      for number in 0..<object.packs {
        let pack = object.whole(number)
        if let other = found.updateValue(pack, forKey: pack.id), other != pack { return nil }
      }
    }
    let packs = found.values.sorted { $0.id < $1.id }
    let numbers = Dictionary(
      uniqueKeysWithValues: packs.enumerated().map { ($1.id, UInt32($0)) })
    self.objects = objects
    self.packs = packs
    packNumbers = objects.map { object in
      (0..<object.packs).map { numbers[object.pack($0).id] ?? 0 }
    }
    var isThere: [Bool] = []
    let isDropped = packs.map { dropped.contains($0.id) }
    for (pack, isDropped) in zip(packs, isDropped) {
      isThere.append(isDropped ? false : try isPresent(pack.id))
    }
    self.isDropped = isDropped
    self.isPresent = isThere
    isNamed = isThere
  }

  /// Passes the bytes of the merged object to `emit` in order. Returns false, before any bytes, if
  /// the objects contradict each other about a blob or the result would exceed the maximum size of
  /// an index object.
  mutating func write(_ emit: ([UInt8]) throws(StoreError) -> Void) throws(StoreError) -> Bool {
    let most = (0..<IndexObject.Layout.kinds).map { kind in
      objects.reduce(0) { $0 + $1.layout.blobsByKind[kind] }
    }
    var all = IndexBuilder.Head(packs: packs, atMost: most)
    let isConsistent = try forEachEntry { record throws(StoreError) in
      isNamed[Int(record.pack)] = true
      all.count(record)
    }
    guard isConsistent else { return false }
    let head = all.with(packs: packs.indices.filter { isNamed[$0] }.map { packs[$0] })
    guard head.layout.size <= FormatLimit.index else { return false }
    try emit(head.encode())
    let numbers = newNumbers()
    var buffer: [UInt8] = []
    buffer.reserveCapacity(Self.portion + BlobRecord.size)
    _ = try forEachEntry { record throws(StoreError) in
      var record = record
      record.pack = numbers[Int(record.pack)]
      record.encode(into: &buffer)
      guard buffer.count >= Self.portion else { return }
      try emit(buffer)
      buffer.removeAll(keepingCapacity: true)
    }
    try emit(buffer)
    return true
  }

  private static let portion = 1 << 20

  /// The new numbers of the packs, without those that no entry names.
  private func newNumbers() -> [UInt32] {
    var next: UInt32 = 0
    return isNamed.map { isNamed in
      defer { if isNamed { next += 1 } }
      return next
    }
  }

  /// Calls `body` with the entries that stay, in index order. Returns false if two entries of the
  /// same blob and pack differ, or if one cannot be read.
  private func forEachEntry(
    _ body: (BlobRecord) throws(StoreError) -> Void
  ) throws(StoreError) -> Bool {
    var cursors = objects.indices.map { Cursor(objects[$0], packNumbers[$0]) }
    var same: [BlobRecord] = []
    while let first = Self.smallest(cursors) {
      same.removeAll(keepingCapacity: true)
      for number in cursors.indices {
        while let record = cursors[number].record, record.id == first {
          same.append(record)
          cursors[number].advance()
        }
      }
      if same.count > 1 {
        guard let distinct = Self.distinct(same) else { return false }
        let present = distinct.filter { isPresent[Int($0.pack)] }
        same = present.isEmpty ? distinct : present
      }
      for record in same where !isDropped[Int(record.pack)] { try body(record) }
    }
    return cursors.allSatisfy(\.isAtEnd)
  }

  private static func smallest(_ cursors: [Cursor]) -> BlobID? {
    var least: BlobID?
    for number in cursors.indices {
      guard let id = cursors[number].record?.id else { continue }
      if let found = least, !(id < found) { continue }
      least = id
    }
    return least
  }

  /// Returns the entries of one blob ordered by pack, each once, or nil if two of one pack differ.
  private static func distinct(_ entries: [BlobRecord]) -> [BlobRecord]? {
    var distinct: [BlobRecord] = []
    for record in entries.sorted(by: { $0.pack < $1.pack }) {
      if let last = distinct.last, last.pack == record.pack {
        guard last == record else { return nil }
      } else {
        distinct.append(record)
      }
    }
    return distinct
  }

  /// A cursor over an object's entries, with pack numbers of the merged table.
  private struct Cursor {
    private let object: IndexObject
    private let packNumbers: [UInt32]
    private var next = 0
    private(set) var record: BlobRecord?

    var isAtEnd: Bool { next > object.blobs }

    init(_ object: IndexObject, _ packNumbers: [UInt32]) {
      self.object = object
      self.packNumbers = packNumbers
      advance()
    }

    mutating func advance() {
      record = nil
      guard next < object.blobs else {
        next = object.blobs + 1
        return
      }
      guard var found = object.record(next), Int(found.pack) < packNumbers.count else { return }
      found.pack = packNumbers[Int(found.pack)]
      record = found
      next += 1
    }
  }
}

extension IndexMerge {
  /// The groups of index objects to merge. Afterwards no object has more than half the size of the
  /// next larger one, so the number of objects, and how often an entry is rewritten, grow with the
  /// logarithm of the index size.
  struct Plan {
    /// Groups of indices into the given list, at least two each.
    private(set) var groups: [[Int]] = []

    /// Plans for objects of these sizes. No merged object exceeds `limit` bytes.
    init(sizes: [Int], limit: Int = FormatLimit.index) {
      var stack: [(size: Int, members: [Int])] = []
      for index in sizes.indices.sorted(by: { (sizes[$1], $0) < (sizes[$0], $1) }) {
        stack.append((sizes[index], [index]))
        while let last = stack.last, let before = stack.dropLast().last,
          last.size > before.size / 2, last.size + before.size <= limit
        {
          stack.removeLast(2)
          stack.append((before.size + last.size, before.members + last.members))
        }
      }
      groups = stack.map(\.members).filter { $0.count > 1 }
    }
  }
}

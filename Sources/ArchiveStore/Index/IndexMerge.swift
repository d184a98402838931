internal import Codecs

/// Several index objects as one: all of their packs and entries, each once.
///
/// Entries of a pack that is not there are left out where the blob is named in a pack that is; all
/// others stay, so that what is lost can still be named. Entries of condemned packs stay, too: only
/// a sweep knows that no snapshot needs them (docs/repository-format.md, "Merging").
///
/// A repair of packs leaves out all entries of some packs, whatever they name.
///
/// The objects are gone through twice, to count and to write, with about 4 MiB of memory beside the
/// tables of packs.
struct IndexMerge {
  private let objects: [IndexObject]
  private let packs: [IndexBuilder.Pack]
  /// For each object the places of its packs in `packs`.
  private let places: [[UInt32]]
  private let isPresent: [Bool]
  /// Of which packs nothing stays.
  private let isDropped: [Bool]
  /// Of which packs something stays.
  private var isNamed: [Bool]

  /// Prepares to merge. Nothing where the objects contradict each other about a pack: that is for a
  /// check to tell of.
  init?(
    _ objects: [IndexObject], without dropped: Set<Digest> = [],
    isPresent: (Digest) throws(StoreError) -> Bool
  ) throws(StoreError) {
    var found: [Digest: IndexBuilder.Pack] = [:]
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
    places = objects.map { object in
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

  /// Gives the bytes of the merged object piece by piece, in order. False, at once, where the objects
  /// contradict each other about a blob, or where it would be larger than an index object may be.
  mutating func write(_ give: ([UInt8]) throws(StoreError) -> Void) throws(StoreError) -> Bool {
    let most = (0..<IndexLayout.kinds).map { kind in
      objects.reduce(0) { $0 + $1.layout.blobsByKind[kind] }
    }
    var all = IndexHead(packs: packs, atMost: most)
    let isConsistent = try forEachEntry { record throws(StoreError) in
      isNamed[Int(record.pack)] = true
      all.count(record)
    }
    guard isConsistent else { return false }
    let head = all.with(packs: packs.indices.filter { isNamed[$0] }.map { packs[$0] })
    guard head.layout.size <= FormatLimit.index else { return false }
    try give(head.encode())
    let numbers = newNumbers()
    var buffer: [UInt8] = []
    buffer.reserveCapacity(Self.portion + BlobRecord.size)
    _ = try forEachEntry { record throws(StoreError) in
      var record = record
      record.pack = numbers[Int(record.pack)]
      record.encode(into: &buffer)
      guard buffer.count >= Self.portion else { return }
      try give(buffer)
      buffer.removeAll(keepingCapacity: true)
    }
    try give(buffer)
    return true
  }

  private static let portion = 1 << 20

  /// The packs' numbers when those that nothing names are left out.
  private func newNumbers() -> [UInt32] {
    var next: UInt32 = 0
    return isNamed.map { isNamed in
      defer { if isNamed { next += 1 } }
      return next
    }
  }

  /// Gives the entries that stay in the order of an index. False where two of one blob and pack
  /// differ, or one cannot be read.
  private func forEachEntry(
    _ body: (BlobRecord) throws(StoreError) -> Void
  ) throws(StoreError) -> Bool {
    var cursors = objects.indices.map { Cursor(objects[$0], places[$0]) }
    var same: [BlobRecord] = []
    while let first = Self.least(cursors) {
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

  private static func least(_ cursors: [Cursor]) -> BlobID? {
    var least: BlobID?
    for number in cursors.indices {
      guard let id = cursors[number].record?.id else { continue }
      if let found = least, !(id < found) { continue }
      least = id
    }
    return least
  }

  /// The entries of one blob by their packs, each once; nothing where two of one pack differ.
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

  /// A way through an object's entries, with the packs' places in the merged table.
  private struct Cursor {
    private let object: IndexObject
    private let places: [UInt32]
    private var next = 0
    private(set) var record: BlobRecord?

    var isAtEnd: Bool { next > object.blobs }

    init(_ object: IndexObject, _ places: [UInt32]) {
      self.object = object
      self.places = places
      advance()
    }

    mutating func advance() {
      record = nil
      guard next < object.blobs else {
        next = object.blobs + 1
        return
      }
      guard var found = object.record(next), Int(found.pack) < places.count else { return }
      found.pack = places[Int(found.pack)]
      record = found
      next += 1
    }
  }
}

extension IndexObject {
  /// A pack with its frames.
  func whole(_ number: Int) -> IndexBuilder.Pack {
    let pack = pack(number)
    return IndexBuilder.Pack(
      id: pack.id, size: pack.size,
      frames: (0..<pack.frames).map { frame(pack.firstFrame + $0) })
  }
}

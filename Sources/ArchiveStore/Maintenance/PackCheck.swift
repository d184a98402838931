internal import Codecs
internal import SystemIO

/// Reads one pack whole and holds it against its id, its own tables, its blobs' hashes and what the
/// index says of it. Holds one frame, stored and decoded.
struct PackCheck: ~Copyable {
  /// What was found in a pack.
  struct Verdict: Sendable {
    let pack: Digest
    /// What is wrong, a sentence each.
    var faults: [String] = []
    /// Blobs that the index or the pack itself promises and that cannot be had from it.
    var lost: Set<BlobID> = []
    var bytes: UInt64 = 0
    var blobs = 0
  }

  private let storage: any Storage
  private let path: ObjectPath
  private let size: UInt64
  private(set) var verdict: Verdict
  private var decompressor: ZstdDecompressor
  private var hash = Blake2b()
  /// Up to where the pack's bytes are in the hash; nothing once some could not be read.
  private var hashed: UInt64? = 0
  private var plain: [UInt8] = []
  /// Frames that are no more told one by one.
  private var badFrames = 0

  init(_ pack: Digest, size: UInt64, in storage: any Storage) throws(StoreError) {
    let decompressor = try StoreError.wrap(coding: "a frame") { () throws(CodecError) in
      try ZstdDecompressor()
    }
    self.decompressor = decompressor
    self.storage = storage
    self.size = size
    path = RepositoryLayout.pack(pack)
    verdict = Verdict(pack: pack)
  }

  /// Reads the pack. The index has `expected` entries of it.
  mutating func run(_ index: CheckedIndex, expected: Int) {
    let (frames, records) = tables(index, expected: expected)
    var next = 0
    for (number, frame) in frames.enumerated() {
      let first = next
      while next < records.count, Int(records[next].frame) == number { next += 1 }
      check(number, frame, records[first..<next])
    }
    lose(records[next...])
    finish()
  }

  /// The frames to read and the blobs to find in them, in the order of the frames: by the pack's
  /// own tables if the index agrees with them, else by the index, which is what a restore goes by.
  private mutating func tables(
    _ index: CheckedIndex, expected: Int
  ) -> (frames: [FramePlace], records: [BlobRecord]) {
    let indexed = index.tables(of: verdict.pack).first
    var own: PackTables?
    do {
      own = try PackTables.load(verdict.pack, size: size, from: storage)
    } catch {
      verdict.faults.append(error.reason)
    }
    if let own {
      let isAgreed = indexed.map { $0.frames == own.frames } ?? true
      if isAgreed, index.confirmed(by: own.records, of: verdict.pack) == expected {
        return (own.frames, own.records.sorted { $0.frame < $1.frame })
      }
      verdict.faults.append("the index has other blobs or frames of it than its own tables")
    }
    let records = Set(index.records(of: verdict.pack)).sorted { $0.frame < $1.frame }
    return (indexed?.frames ?? [], records)
  }

  private mutating func check(
    _ number: Int, _ frame: FramePlace, _ records: ArraySlice<BlobRecord>
  ) {
    do throws(StoreError) {
      try decode(frame)
      for record in records { check(record) }
    } catch {
      badFrames += 1
      if badFrames <= Self.toldFrames {
        verdict.faults.append("frame \(number): \(error.reason)")
      }
      lose(records)
    }
  }

  private mutating func decode(_ frame: FramePlace) throws(StoreError) {
    let stored: [UInt8]
    do throws(StoreError) {
      try hash(upTo: frame.offset)
      stored = try storage.load(path, offset: frame.offset, count: Int(frame.stored))
    } catch {
      hashed = nil
      throw error
    }
    take(stored)
    plain.removeAll(keepingCapacity: true)
    do {
      try decompressor.decompress(stored.span, limit: Int(frame.plain), appendingTo: &plain)
    } catch { throw .codec(error, "\(path)") }
  }

  /// Of how many bad frames a pack's verdict has a sentence each.
  private static let toldFrames = 3

  private mutating func check(_ record: BlobRecord) {
    verdict.blobs += 1
    let range = Int(record.offset)..<(Int(record.offset) + Int(record.length))
    if range.upperBound <= plain.count,
      Blake2b.hash(plain.span.extracting(range)) == record.digest
    {
      return
    }
    verdict.faults.append("frame \(record.frame) holds other bytes at the place of \(record.id)")
    verdict.lost.insert(record.id)
  }

  private mutating func lose(_ records: ArraySlice<BlobRecord>) {
    verdict.lost.formUnion(records.map(\.id))
  }

  private mutating func take(_ bytes: [UInt8]) {
    hash.update(bytes)
    hashed? += UInt64(bytes.count)
    verdict.bytes += UInt64(bytes.count)
  }

  /// Takes what lies before a place and in no frame.
  private mutating func hash(upTo end: UInt64) throws(StoreError) {
    while let place = hashed, place < end {
      let count = Int(min(end - place, 1 << 20))
      take(try storage.load(path, offset: place, count: count))
    }
  }

  /// Takes what lies behind the frames, and holds all bytes against the id.
  private mutating func finish() {
    if badFrames > Self.toldFrames {
      verdict.faults.append("\(badFrames - Self.toldFrames) more frames cannot be decoded")
    }
    do {
      try hash(upTo: size)
    } catch {
      hashed = nil
      verdict.faults.append(error.reason)
    }
    if hashed == size, hash.finish() != verdict.pack {
      verdict.faults.append("its bytes are not those that its name was made of")
    }
  }
}

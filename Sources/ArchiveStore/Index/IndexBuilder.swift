internal import Codecs

/// Packs and their blobs, collected for one index object.
struct IndexBuilder {
  /// A durable pack.
  struct Pack: Hashable {
    let id: Digest
    let size: UInt64
    let frames: [FrameLocation]
  }

  var packs: [Pack] = []
  var records: [BlobRecord] = []

  /// Returns the object's bytes. The `pack` of each record is an index into `packs`.
  consuming func encode() -> [UInt8] {
    var blobs = [Int](repeating: 0, count: IndexLayout.kinds)
    for record in records { blobs[Int(record.kind.rawValue)] += 1 }
    var head = IndexHead(packs: packs, atMost: blobs)
    for record in records { head.count(record) }
    var bytes = head.encode()
    bytes.reserveCapacity(bytes.count + records.count * BlobRecord.size)
    records.sort { $0.isIndexed(before: $1) }
    for record in records { record.encode(into: &bytes) }
    return bytes
  }

  /// Adds a pack and the records of its contents table. A blob that occurs twice in it is listed
  /// once.
  mutating func add(_ pack: Pack, records: [BlobRecord]) {
    var seen: Set<BlobID> = []
    for var record in records where seen.insert(record.id).inserted {
      record.pack = UInt32(packs.count)
      self.records.append(record)
    }
    packs.append(pack)
  }
}

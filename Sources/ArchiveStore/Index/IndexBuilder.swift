internal import Codecs

/// Packs and their blobs, collected for one index object.
struct IndexBuilder {
  var packs: [PackTables.Pack] = []
  var records: [BlobRecord] = []

  /// Returns the object's bytes. The `pack` of each record is an index into `packs`.
  consuming func encode() -> [UInt8] {
    var blobs = [Int](repeating: 0, count: IndexObject.Layout.kinds)
    for record in records { blobs[Int(record.kind.rawValue)] += 1 }
    var head = Head(packs: packs, atMost: blobs)
    for record in records { head.count(record) }
    var bytes = head.encode()
    bytes.reserveCapacity(bytes.count + records.count * BlobRecord.size)
    records.sort { $0.isIndexed(before: $1) }
    for record in records { record.encode(into: &bytes) }
    return bytes
  }

  /// Adds a pack and the records of its contents table. A blob that occurs twice in it is listed
  /// once.
  mutating func add(_ pack: PackTables.Pack, records: [BlobRecord]) {
    var seen: Set<BlobID> = []
    for var record in records where seen.insert(record.id).inserted {
      record.pack = UInt32(packs.count)
      self.records.append(record)
    }
    packs.append(pack)
  }
}

extension IndexBuilder {
  /// The part of an index object before its blob entries: header, packs, frames and fan-outs.
  struct Head {
    private(set) var packs: [PackTables.Pack]
    /// For each kind, the number of blobs by the first bits of their hash. `bits` has the number of
    /// bits.
    private var counts: [[UInt32]]
    private let bits: [Int]
    private var blobsByKind = [Int](repeating: 0, count: IndexObject.Layout.kinds)

    /// Prepares to count at most `blobsByKind` blobs of each kind.
    init(packs: [PackTables.Pack], atMost blobsByKind: [Int]) {
      self.packs = packs
      bits = blobsByKind.map(IndexObject.Layout.fanOutBits)
      counts = bits.map { [UInt32](repeating: 0, count: 1 << $0) }
    }

    /// Returns the same counts with other packs.
    func with(packs: [PackTables.Pack]) -> Head {
      var head = self
      head.packs = packs
      return head
    }

    mutating func count(_ record: BlobRecord) {
      let kind = Int(record.kind.rawValue)
      counts[kind][IndexObject.Layout.slot(record.digest, bits: bits[kind])] += 1
      blobsByKind[kind] += 1
    }

    var layout: IndexObject.Layout {
      IndexObject.Layout(
        packs: packs.count, frames: packs.reduce(0) { $0 + $1.frames.count },
        blobsByKind: blobsByKind)
    }

    func encode() -> [UInt8] {
      let layout = layout
      var bytes: [UInt8] = []
      bytes.reserveCapacity(layout.blobTable)
      layout.encodeHeader(into: &bytes)
      encodePacks(into: &bytes)
      for (kind, wanted) in layout.fanOutBits.enumerated() {
        // A lower count than expected may need fewer bits.
        let slots = 1 << (bits[kind] - wanted)
        var total: UInt32 = 0
        for (number, count) in counts[kind].enumerated() {
          total += count
          if (number + 1) % slots == 0 { bytes.append(littleEndian: total) }
        }
      }
      return bytes
    }

    private func encodePacks(into bytes: inout [UInt8]) {
      var firstFrame: UInt32 = 0
      for pack in packs {
        pack.id.append(to: &bytes)
        bytes.append(littleEndian: pack.size)
        bytes.append(littleEndian: firstFrame)
        bytes.append(littleEndian: UInt32(pack.frames.count))
        firstFrame += UInt32(pack.frames.count)
      }
      for location in packs.lazy.flatMap(\.frames) {
        bytes.append(littleEndian: location.offset)
        bytes.append(littleEndian: location.stored)
        bytes.append(littleEndian: location.plain)
      }
    }
  }
}

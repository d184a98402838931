internal import Codecs

/// Packs and their blobs, to be written as one index object.
struct IndexBuilder {
  /// A pack that is durable.
  struct Pack {
    let id: Digest
    let size: UInt64
    let frames: [FramePlace]
  }

  var packs: [Pack] = []
  var records: [BlobRecord] = []

  /// The object's bytes. The records' packs are places in `packs`.
  func encode() -> [UInt8] {
    let sorted = records.sorted { $0.id < $1.id }
    let layout = IndexLayout(
      packs: packs.count, frames: packs.reduce(0) { $0 + $1.frames.count },
      blobsByKind: BlobKind.allCases.map { kind in records.count { $0.kind == kind } })
    var bytes: [UInt8] = []
    bytes.reserveCapacity(layout.size)
    layout.encodeHeader(into: &bytes)
    encodePacks(into: &bytes)
    for kind in BlobKind.allCases {
      let first = layout.firstBlob(of: kind)
      let end = first + layout.blobsByKind[Int(kind.rawValue)]
      encodeFanOut(
        sorted[first..<end], bits: layout.fanOutBits[Int(kind.rawValue)], into: &bytes)
    }
    for record in sorted { record.encode(into: &bytes) }
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
    for place in packs.lazy.flatMap(\.frames) {
      bytes.append(littleEndian: place.offset)
      bytes.append(littleEndian: place.stored)
      bytes.append(littleEndian: place.plain)
    }
  }

  private func encodeFanOut(
    _ records: ArraySlice<BlobRecord>, bits: Int, into bytes: inout [UInt8]
  ) {
    var counts = [UInt32](repeating: 0, count: 1 << bits)
    for record in records { counts[IndexLayout.slot(record.digest, bits: bits)] += 1 }
    var total: UInt32 = 0
    for count in counts {
      total += count
      bytes.append(littleEndian: total)
    }
  }
}

internal import Codecs

/// An index object, searched in place: where each blob of some packs lies.
///
/// All of it is checked when it is opened: the tables' bounds, the order of the entries, that each
/// entry names a frame of its pack and lies within that frame. So a lookup needs no more checks.
struct IndexObject: Sendable {
  let id: Digest
  private let bytes: [UInt8]
  private let layout: IndexLayout

  /// One pack of the table.
  struct Pack: Hashable, Sendable {
    let id: Digest
    let size: UInt64
    let firstFrame: Int
    let frames: Int
  }

  /// Opens an index whose bytes are held against its id first.
  init(id: Digest, bytes: [UInt8]) throws(StoreError) {
    let object = "index/\(id.hex).index"
    guard Blake2b.hash(bytes) == id else {
      throw .damaged(object, "its bytes are not those that its name was made of")
    }
    self.id = id
    self.bytes = bytes
    layout = try IndexLayout(header: bytes, object: object)
    if let fault = firstFault() { throw .damaged(object, fault) }
  }

  var packs: Int { layout.packs }
  var blobs: Int { layout.blobs }

  /// A pack by its place in the table.
  func pack(_ number: Int) -> Pack {
    let at = layout.packTable + number * IndexLayout.packSize
    return Pack(
      id: bytes.digest(at: at), size: bytes.integer(at: at + 32, as: UInt64.self),
      firstFrame: Int(bytes.integer(at: at + 40, as: UInt32.self)),
      frames: Int(bytes.integer(at: at + 44, as: UInt32.self)))
  }

  /// A frame by its place in the table of all packs' frames.
  func frame(_ number: Int) -> FramePlace {
    let at = layout.frameTable + number * IndexLayout.frameSize
    return FramePlace(
      offset: bytes.integer(at: at, as: UInt64.self),
      stored: bytes.integer(at: at + 8, as: UInt32.self),
      plain: bytes.integer(at: at + 12, as: UInt32.self))
  }

  /// A blob by its place in the table.
  func record(_ number: Int) -> BlobRecord? {
    BlobRecord(bytes, at: layout.blobTable + number * BlobRecord.size)
  }

  /// Finds a blob, in the slot of its first bits, by halving.
  func find(_ blob: BlobID) -> BlobRecord? {
    let kind = Int(blob.kind.rawValue)
    let slot = IndexLayout.slot(blob.digest, bits: layout.fanOutBits[kind])
    let first = layout.firstBlob(of: blob.kind)
    var low = first + (slot == 0 ? 0 : fanOut(blob.kind, slot - 1))
    var high = first + fanOut(blob.kind, slot)
    while low < high {
      let middle = (low + high) / 2
      let at = layout.blobTable + middle * BlobRecord.size
      let digest = bytes.digest(at: at)
      if digest == blob.digest { return BlobRecord(bytes, at: at) }
      if digest < blob.digest { low = middle + 1 } else { high = middle }
    }
    return nil
  }

  /// How many blobs of a kind lie in the slots up to this one.
  private func fanOut(_ kind: BlobKind, _ slot: Int) -> Int {
    Int(bytes.integer(at: layout.fanOut(of: kind) + 4 * slot, as: UInt32.self))
  }
}

// MARK: - Checks

extension IndexObject {
  private func firstFault() -> String? {
    packFault() ?? BlobKind.allCases.lazy.compactMap { fanOutFault($0) }.first ?? blobFault()
  }

  /// Frames follow one another within their pack, packs within the table.
  private func packFault() -> String? {
    var next = 0
    for number in 0..<packs {
      let pack = pack(number)
      guard pack.firstFrame == next, pack.frames <= layout.frames - next,
        pack.frames <= FormatLimit.framesPerPack
      else { return "pack \(number) claims frames that are not its own" }
      next += pack.frames
      var end: UInt64 = 0
      for number in pack.firstFrame..<next {
        let place = frame(number)
        guard place.offset >= end, place.stored > 0, place.plain <= FormatLimit.frame,
          place.offset <= pack.size, UInt64(place.stored) <= pack.size - place.offset
        else { return "frame \(number) lies outside of its pack" }
        end = place.offset + UInt64(place.stored)
      }
    }
    return next == layout.frames ? nil : "it has frames without a pack"
  }

  /// The slots' counts never fall, and end at the number of blobs.
  private func fanOutFault(_ kind: BlobKind) -> String? {
    var last = 0
    for slot in 0..<(1 << layout.fanOutBits[Int(kind.rawValue)]) {
      let count = fanOut(kind, slot)
      if count < last { return "its fan-out falls at slot \(slot)" }
      last = count
    }
    return last == layout.blobsByKind[Int(kind.rawValue)] ? nil : "its fan-out ends elsewhere"
  }

  /// Entries rise by kind and hash, lie in the slot of their hash, and name a place that exists.
  private func blobFault() -> String? {
    var last: BlobID?
    for number in 0..<blobs {
      guard let record = record(number) else {
        return "entry \(number) is of no known kind or size"
      }
      if let last, !(last < record.id) { return "entry \(number) is out of order" }
      last = record.id
      let place = number - layout.firstBlob(of: record.kind)
      let slot = IndexLayout.slot(
        record.digest, bits: layout.fanOutBits[Int(record.kind.rawValue)])
      guard place >= 0, place < fanOut(record.kind, slot),
        slot == 0 || place >= fanOut(record.kind, slot - 1)
      else { return "entry \(number) lies in the wrong slot" }
      guard record.pack < packs else { return "entry \(number) names a pack that is not there" }
      let pack = pack(Int(record.pack))
      guard record.frame < pack.frames,
        record.fits(in: frame(pack.firstFrame + Int(record.frame)).plain)
      else { return "entry \(number) names a place outside of its frame" }
    }
    return nil
  }
}

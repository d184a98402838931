internal import Codecs

extension IndexObject {
  /// The offsets of an index object's tables (docs/repository-format.md, "Index").
  struct Layout: Sendable {
    static let magic: [UInt8] = Array("sbxindex".utf8)
    static let version: UInt32 = 1
    static let headerSize = 64
    static let packSize = 48
    static let frameSize = 16
    static let kinds = BlobKind.allCases.count

    let packs: Int
    let frames: Int
    let blobsByKind: [Int]
    let fanOutBits: [Int]

    var blobs: Int { blobsByKind.reduce(0, +) }
    var packTable: Int { Self.headerSize }
    var frameTable: Int { packTable + packs * Self.packSize }
    var fanOutTable: Int { frameTable + frames * Self.frameSize }
    var blobTable: Int { fanOutTable + fanOutBits.reduce(0) { $0 + (1 << $1) } * 4 }
    var size: Int { blobTable + blobs * BlobRecord.size }

    /// The layout of an index with these numbers of packs, frames and blobs of each kind.
    init(packs: Int, frames: Int, blobsByKind: [Int]) {
      self.packs = packs
      self.frames = frames
      self.blobsByKind = blobsByKind
      fanOutBits = blobsByKind.map(Self.fanOutBits)
    }

    /// The number of fan-out bits: at most 16, chosen so that a slot has about 16 entries.
    static func fanOutBits(blobs: Int) -> Int {
      var bits = 0
      while bits < 16 && (16 << bits) < blobs { bits += 1 }
      return bits
    }

    /// Returns the slot of a hash: its first bits.
    static func slot(_ digest: Digest, bits: Int) -> Int { Int(digest.prefix) >> (16 - bits) }

    /// Returns the offset of the fan-out of a kind.
    func fanOut(of kind: BlobKind) -> Int {
      fanOutTable + fanOutBits[..<Int(kind.rawValue)].reduce(0) { $0 + (1 << $1) } * 4
    }

    /// Returns the index of a kind's first entry among all entries.
    func firstBlob(of kind: BlobKind) -> Int {
      blobsByKind[..<Int(kind.rawValue)].reduce(0, +)
    }

    func encodeHeader(into bytes: inout [UInt8]) {
      bytes += Self.magic
      for value in [Self.version, UInt32(packs), UInt32(frames), UInt32(blobs)] {
        bytes.append(littleEndian: value)
      }
      for count in blobsByKind { bytes.append(littleEndian: UInt32(count)) }
      bytes += fanOutBits.map { UInt8($0) }
      bytes += [UInt8](repeating: 0, count: Self.headerSize - bytes.count)
    }

    /// Reads a header and checks it against the object's size, so that every table lies within the
    /// object.
    init(headerOf bytes: RawSpan, object: String) throws(StoreError) {
      guard bytes.byteCount >= Self.headerSize,
        Self.magic.indices.allSatisfy({ bytes.byte(at: $0) == Self.magic[$0] })
      else { throw .damaged(object, "it does not begin with the index signature") }
      let version = bytes.integer(at: 8, as: UInt32.self)
      guard version == Self.version else {
        throw StoreError(
          .unsupported, "use", subject: object, reason: "index version \(version) is not supported",
          hint: "use a newer sandboxctl")
      }
      packs = Int(bytes.integer(at: 12, as: UInt32.self))
      frames = Int(bytes.integer(at: 16, as: UInt32.self))
      blobsByKind = (0..<Self.kinds).map { Int(bytes.integer(at: 24 + 4 * $0, as: UInt32.self)) }
      fanOutBits = (0..<Self.kinds).map { Int(bytes.byte(at: 36 + $0)) }
      guard fanOutBits == blobsByKind.map(Self.fanOutBits),
        blobs == Int(bytes.integer(at: 20, as: UInt32.self)),
        (39..<Self.headerSize).allSatisfy({ bytes.byte(at: $0) == 0 }), size == bytes.byteCount
      else { throw .damaged(object, "its header does not match its size") }
    }
  }
}

// MARK: - Tables

extension IndexObject.Layout {
  func pack(_ number: Int, in bytes: RawSpan) -> IndexObject.Pack {
    let at = packTable + number * Self.packSize
    return IndexObject.Pack(
      id: Digest(bytes, at: at), size: bytes.integer(at: at + 32, as: UInt64.self),
      firstFrame: Int(bytes.integer(at: at + 40, as: UInt32.self)),
      frames: Int(bytes.integer(at: at + 44, as: UInt32.self)))
  }

  func frame(_ number: Int, in bytes: RawSpan) -> FrameLocation {
    let at = frameTable + number * Self.frameSize
    return FrameLocation(
      offset: bytes.integer(at: at, as: UInt64.self),
      stored: bytes.integer(at: at + 8, as: UInt32.self),
      plain: bytes.integer(at: at + 12, as: UInt32.self))
  }

  func record(_ number: Int, in bytes: RawSpan) -> BlobRecord? {
    BlobRecord(bytes, at: blobTable + number * BlobRecord.size)
  }

  /// Returns the number of blobs of a kind in the slots up to and including this one.
  func fanOut(_ kind: BlobKind, _ slot: Int, in bytes: RawSpan) -> Int {
    Int(bytes.integer(at: fanOut(of: kind) + 4 * slot, as: UInt32.self))
  }

  /// Whether an entry names an existing pack and frame, and lies within the frame.
  func fitsFrame(_ record: BlobRecord, _ bytes: RawSpan) -> Bool {
    guard record.pack < packs else { return false }
    let pack = pack(Int(record.pack), in: bytes)
    let frame = pack.firstFrame + Int(record.frame)
    return record.frame < pack.frames && frame < frames
      && record.fits(in: self.frame(frame, in: bytes).plain)
  }
}

// MARK: - Checks

extension IndexObject {
  /// Returns the first violation of the format in the tables, or nil if there is none.
  func firstFault() -> String? {
    bytes.withBytes { bytes in
      if let fault = layout.packFault(bytes) { return fault }
      for kind in BlobKind.allCases {
        if let fault = layout.fanOutFault(kind, bytes) { return fault }
      }
      return layout.blobFault(bytes)
    }
  }
}

extension IndexObject.Layout {
  /// Checks that frames follow one another within their pack, and packs within the table.
  fileprivate func packFault(_ bytes: RawSpan) -> String? {
    var next = 0
    for number in 0..<packs {
      let pack = pack(number, in: bytes)
      guard pack.firstFrame == next, pack.frames <= frames - next,
        pack.frames <= FormatLimit.framesPerPack
      else { return "pack \(number) claims frames of another pack" }
      next += pack.frames
      var end: UInt64 = 0
      for number in pack.firstFrame..<next {
        let location = frame(number, in: bytes)
        guard location.offset >= end, location.stored > 0, location.plain > 0,
          location.plain <= FormatLimit.frame, location.stored <= FormatLimit.storedFrame,
          location.offset <= pack.size, UInt64(location.stored) <= pack.size - location.offset
        else { return "frame \(number) lies outside its pack" }
        end = location.offset + UInt64(location.stored)
      }
    }
    return next == frames ? nil : "it has frames that belong to no pack"
  }

  /// Checks that the counts of the slots never decrease, and end at the number of blobs.
  fileprivate func fanOutFault(_ kind: BlobKind, _ bytes: RawSpan) -> String? {
    var last = 0
    for slot in 0..<(1 << fanOutBits[Int(kind.rawValue)]) {
      let count = fanOut(kind, slot, in: bytes)
      if count < last { return "its fan-out decreases at slot \(slot)" }
      last = count
    }
    return last == blobsByKind[Int(kind.rawValue)]
      ? nil : "its fan-out does not end at the number of blobs"
  }

  /// Checks that entries ascend by kind, hash and pack, are in the slot of their hash, and name an
  /// existing location.
  fileprivate func blobFault(_ bytes: RawSpan) -> String? {
    var last: BlobRecord?
    for number in 0..<blobs {
      guard let record = record(number, in: bytes) else {
        return "entry \(number) has an unknown kind or an invalid size"
      }
      if let last, !last.isIndexed(before: record) { return "entry \(number) is out of order" }
      last = record
      let position = number - firstBlob(of: record.kind)
      let slot = Self.slot(record.digest, bits: fanOutBits[Int(record.kind.rawValue)])
      guard position >= 0, position < fanOut(record.kind, slot, in: bytes),
        slot == 0 || position >= fanOut(record.kind, slot - 1, in: bytes)
      else { return "entry \(number) is in the wrong slot" }
      guard record.pack < packs else { return "entry \(number) names a pack that does not exist" }
      guard fitsFrame(record, bytes) else {
        return "entry \(number) lies outside its frame"
      }
    }
    return nil
  }
}

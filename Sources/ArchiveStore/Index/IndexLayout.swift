internal import Codecs

/// The offsets of an index object's tables (docs/repository-format.md, "Index").
struct IndexLayout: Sendable {
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

internal import Codecs
internal import SystemIO

/// A pack's own table, its last member: by it an index can be made again
/// (docs/repository-format.md, "Contents").
struct PackContents: Hashable, Sendable {
  static let memberName: ByteString = ".sandboxctl/contents"
  static let magic: [UInt8] = Array("sbxpack".utf8) + [0]
  static let version: UInt32 = 1
  static let saltSize = 16
  static let headerSize = 32

  /// In the order of the frames; `pack` is 0.
  var records: [BlobRecord] = []

  /// The member's bytes: 16 random ones, so that no pack ever has the id of another, then the table.
  func encode(salt: [UInt8] = Host.random(count: saltSize)) -> [UInt8] {
    var bytes = salt
    bytes.reserveCapacity(Self.headerSize + records.count * BlobRecord.size)
    bytes += Self.magic
    bytes.append(littleEndian: Self.version)
    bytes.append(littleEndian: UInt32(records.count))
    for record in records { record.encode(into: &bytes) }
    return bytes
  }

  /// Reads a table and holds each entry against the frames before the one that it lies in.
  init(_ bytes: [UInt8], frames: [FrameLocation], pack: String) throws(StoreError) {
    guard bytes.count >= Self.headerSize, bytes.count <= FormatLimit.contents,
      bytes[Self.saltSize...].starts(with: Self.magic)
    else { throw .damaged(pack, "its contents do not begin as a pack's do") }
    let table = bytes.span.bytes
    let version = table.integer(at: 24, as: UInt32.self)
    guard version == Self.version else {
      throw StoreError(
        .unsupported, "use", pack, "version \(version) of the contents is not known",
        hint: "use a newer sandboxctl")
    }
    let count = Int(table.integer(at: 28, as: UInt32.self))
    guard bytes.count == Self.headerSize + count * BlobRecord.size else {
      throw .damaged(pack, "its contents do not have the size that they claim")
    }
    records.reserveCapacity(count)
    for number in 0..<count {
      let at = Self.headerSize + number * BlobRecord.size
      guard let record = BlobRecord(table, at: at), record.pack == 0,
        Int(record.frame) + 1 < frames.count,
        record.fits(in: frames[Int(record.frame)].plain),
        records.last.map({ record.follows($0) }) ?? true
      else {
        throw .damaged(
          pack, "entry \(number) of its contents names no place in the pack, or one out of order")
      }
      records.append(record)
    }
  }

  init() {}
}

internal import Codecs
internal import SystemIO

/// A pack's own table, its last member, from which an index can be rebuilt
/// (docs/repository-format.md, "Contents").
struct PackContents: Hashable, Sendable {
  static let memberName: ByteString = ".sandboxctl/contents"
  static let magic: [UInt8] = Array("sbxpack".utf8) + [0]
  static let version: UInt32 = 1
  static let saltSize = 16
  static let headerSize = 32

  /// The entries in the order of the frames; their `pack` is 0.
  var records: [BlobRecord] = []

  /// Returns the bytes of the member: 16 random bytes, which make each pack's id unique, then the
  /// table.
  func encode(salt: [UInt8] = Host.random(count: saltSize)) -> [UInt8] {
    var bytes = salt
    bytes.reserveCapacity(Self.headerSize + records.count * BlobRecord.size)
    bytes += Self.magic
    bytes.append(littleEndian: Self.version)
    bytes.append(littleEndian: UInt32(records.count))
    for record in records { record.encode(into: &bytes) }
    return bytes
  }

  /// Reads a table and checks each entry against the frames of the pack, except the last one.
  init(_ bytes: [UInt8], frames: [FrameLocation], pack: String) throws(StoreError) {
    guard bytes.count >= Self.headerSize, bytes.count <= FormatLimit.contents,
      bytes[Self.saltSize...].starts(with: Self.magic)
    else { throw .damaged(pack, "its contents table does not begin with the pack signature") }
    let table = bytes.span.bytes
    let version = table.integer(at: 24, as: UInt32.self)
    guard version == Self.version else {
      throw StoreError(
        .unsupported, "use", subject: pack,
        reason: "contents table version \(version) is not supported",
        hint: "use a newer sandboxctl")
    }
    let count = Int(table.integer(at: 28, as: UInt32.self))
    guard bytes.count == Self.headerSize + count * BlobRecord.size else {
      throw .damaged(pack, "its contents table does not have the size in its header")
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
          pack, "entry \(number) of its contents table is out of order or not in the pack")
      }
      records.append(record)
    }
  }

  init() {}
}

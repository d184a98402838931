internal import Codecs
internal import SystemIO

/// The tables at the end of a pack: the locations of its frames, and its blobs.
struct PackTables: Sendable {
  /// A durable pack.
  struct Pack: Hashable {
    let id: Digest
    /// The stored size in bytes.
    let size: UInt64
    let frames: [FrameLocation]
  }

  /// All frames. The last one holds the contents.
  let frames: [FrameLocation]
  /// The blob entries, in the order of the frames.
  let records: [BlobRecord]

  /// Reads the seek table and the contents of a pack of `size` stored bytes; on another host twice
  /// before they count as damaged.
  static func load(
    _ id: Digest, size: UInt64, from storage: RepositoryStorage
  ) throws(StoreError) -> PackTables {
    try storage.readingTwice(storage.layout.pack(id)) { () throws(StoreError) in
      try loadOnce(id, size: size, from: storage)
    }
  }

  private static func loadOnce(
    _ id: Digest, size: UInt64, from storage: RepositoryStorage
  ) throws(StoreError) -> PackTables {
    let path = storage.layout.pack(id)
    let frames = try loadFrames(id, stored: size, storage)
    guard let last = frames.last else { throw .damaged("\(path)", "it has no frame") }
    let stored = try storage.load(pack: id, offset: last.offset, count: Int(last.stored))
    let contents: [UInt8]
    do {
      var decompressor = try ZstdDecompressor()
      contents = try Self.contents(in: decompressor.decompress(stored, limit: Int(last.plain)))
    } catch { throw .codec(error, "\(path), its contents") }
    let records = try Contents(contents, frames: frames, pack: "\(path)").records
    return PackTables(frames: frames, records: records)
  }

  /// Returns the content of the contents member, or an empty array if there is none. A member is
  /// limited to the size of the frame, because a sparse member could claim more than fits in
  /// memory.
  private static func contents(in frame: [UInt8]) throws(CodecError) -> [UInt8] {
    var contents: [UInt8]?
    let limits = TarReader.Limits(contentSize: frame.count, totalSize: frame.count)
    try TarReader.forEach(in: frame.span, limits: limits) { member, content in
      if contents == nil, member.path.elementsEqual(Contents.memberName.bytes) {
        contents = content
      }
    }
    return contents ?? []
  }

  private static func loadFrames(
    _ id: Digest, stored: UInt64, _ storage: RepositoryStorage
  ) throws(StoreError) -> [FrameLocation] {
    let path = storage.layout.pack(id)
    let size = try storage.encryption(ofPack: id, stored: stored)?.contentSize() ?? stored
    let table: SeekTable
    do {
      var tail = try loadTail(id, size: size, count: firstTail, storage)
      let needed = try encodedSize(tail, of: path)
      if needed > tail.count {
        tail = try loadTail(id, size: size, count: needed, storage)
      }
      table = try StoreError.wrap(coding: "\(path), its seek table") { () throws(CodecError) in
        try SeekTable(tail: tail.span, maximumFrames: FormatLimit.framesPerPack)
      }
    }
    var frames: [FrameLocation] = []
    var end: UInt64 = 0
    for frame in table.frames {
      guard frame.storedSize > 0, frame.storedSize <= FormatLimit.storedFrame,
        frame.contentSize > 0, frame.contentSize <= FormatLimit.frame
      else {
        throw .damaged("\(path)", "its seek table has a frame of invalid size")
      }
      frames.append(
        FrameLocation(offset: end, stored: frame.storedSize, plain: frame.contentSize))
      end += UInt64(frame.storedSize)
    }
    guard end + UInt64(table.encodedSize) == size else {
      throw .damaged("\(path)", "its seek table does not add up to the pack's size")
    }
    return frames
  }

  /// The number of bytes first read from the end: enough for the tables of packs of up to 8,000
  /// frames.
  private static let firstTail = 64 << 10

  private static func encodedSize(
    _ tail: [UInt8], of path: ObjectPath
  ) throws(StoreError) -> Int {
    try StoreError.wrap(coding: "\(path), its seek table") { () throws(CodecError) in
      try SeekTable.encodedSize(inTail: tail.span, maximumFrames: FormatLimit.framesPerPack)
    }
  }

  private static func loadTail(
    _ id: Digest, size: UInt64, count: Int, _ storage: RepositoryStorage
  ) throws(StoreError) -> [UInt8] {
    let count = min(UInt64(count), size)
    return try storage.load(pack: id, offset: size - count, count: Int(count))
  }
}

extension PackTables {
  /// A pack's own table, its last member, from which an index can be rebuilt
  /// (docs/repository-format.md, "Contents").
  struct Contents: Hashable, Sendable {
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
}

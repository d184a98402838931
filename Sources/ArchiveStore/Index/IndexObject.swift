internal import Codecs
internal import SystemIO

/// An index object, searched in place: where each blob of some packs lies.
///
/// All of it is checked before it is used the first time: the tables' bounds, the order of the
/// entries, that each entry names a frame of its pack and lies within that frame. A lookup holds
/// what it reads within the tables all the same, for a mapped copy is only as constant as its file.
struct IndexObject: Sendable {
  let id: Digest
  let bytes: IndexBytes
  let layout: IndexLayout

  /// One pack of the table.
  struct Pack: Hashable, Sendable {
    let id: Digest
    let size: UInt64
    let firstFrame: Int
    let frames: Int
  }

  /// Opens an index whose bytes are held against its id first, and checked whole.
  init(id: Digest, bytes: [UInt8]) throws(StoreError) {
    try self.init(id: id, SpillableArray(bytes), digest: Blake2b.hash(bytes))
  }

  /// Reads an index object, a large one piece by piece, and opens it as `init(id:bytes:)` does.
  ///
  /// - Parameter pieceLength: bytes that are read at a time.
  static func load(
    _ id: Digest, from storage: any Storage, by pieceLength: Int = 4 << 20
  ) throws(StoreError) -> IndexObject {
    let path = RepositoryLayout.index(id)
    guard let size = try storage.status(path)?.size else { throw .missing("\(path)") }
    guard size <= UInt64(FormatLimit.index) else {
      throw .damaged("\(path)", "it has \(size) bytes, more than an index object can have")
    }
    if size <= UInt64(pieceLength) {
      return try IndexObject(id: id, bytes: try storage.load(path, limit: FormatLimit.index))
    }
    var bytes = SpillableArray<UInt8>()
    var hash = Blake2b()
    bytes.reserve(Int(size))
    var piece: [UInt8] = []
    while bytes.count < Int(size) {
      let count = min(Int(size) - bytes.count, pieceLength)
      try storage.load(path, offset: UInt64(bytes.count), count: count, into: &piece)
      hash.update(piece)
      bytes.append(contentsOf: piece)
    }
    return try IndexObject(id: id, bytes, digest: hash.finish())
  }

  private init(
    id: Digest, _ bytes: SpillableArray<UInt8>, digest: Digest
  ) throws(StoreError) {
    guard digest == id else {
      throw .damaged(Self.name(id), "its bytes are not those that its name was made of")
    }
    try self.init(id: id, checked: .memory(bytes))
    if let fault = firstFault() { throw .damaged(Self.name(id), fault) }
  }

  /// Opens an index that was checked before.
  init(id: Digest, checked bytes: IndexBytes) throws(StoreError) {
    self.id = id
    self.bytes = bytes
    layout = try bytes.withBytes { bytes throws(StoreError) in
      try IndexLayout(headerOf: bytes, object: Self.name(id))
    }
  }

  /// The object's name in messages.
  static func name(_ id: Digest) -> String { "index/\(id.hex).index" }

  var packs: Int { layout.packs }
  var blobs: Int { layout.blobs }

  /// A pack by its place in the table.
  func pack(_ number: Int) -> Pack { bytes.withBytes { layout.pack(number, in: $0) } }

  /// A frame by its place in the table of all packs' frames.
  func frame(_ number: Int) -> FrameLocation { bytes.withBytes { layout.frame(number, in: $0) } }

  /// A blob by its place in the table.
  func record(_ number: Int) -> BlobRecord? { bytes.withBytes { layout.record(number, in: $0) } }

  /// Finds a blob: the first of its entries.
  func find(_ blob: BlobID) -> BlobRecord? { firstEntry(of: blob).flatMap { placed($0, blob) } }

  /// All entries of a blob, one for each pack that holds it, but no more than 16.
  func findAll(_ blob: BlobID) -> [BlobRecord] {
    guard let first = firstEntry(of: blob) else { return [] }
    var found: [BlobRecord] = []
    for number in first..<min(first + Self.maximumPlaces, blobs) {
      guard let record = placed(number, blob) else { break }
      found.append(record)
    }
    return found
  }

  /// Of how many packs that hold a blob a reader tries the copies.
  static let maximumPlaces = 16

  /// Looks in the slot of a blob's first bits, by halving.
  private func firstEntry(of blob: BlobID) -> Int? {
    bytes.withBytes { bytes in
      let kind = Int(blob.kind.rawValue)
      let slot = IndexLayout.slot(blob.digest, bits: layout.fanOutBits[kind])
      let first = layout.firstBlob(of: blob.kind)
      var low = first + (slot == 0 ? 0 : layout.fanOut(blob.kind, slot - 1, in: bytes))
      let end = min(first + layout.fanOut(blob.kind, slot, in: bytes), layout.blobs)
      var high = end
      while low < high {
        let middle = (low + high) / 2
        let digest = Digest(bytes, at: layout.blobTable + middle * BlobRecord.size)
        if digest < blob.digest { low = middle + 1 } else { high = middle }
      }
      return low < end ? low : nil
    }
  }

  /// An entry, if it is the blob's and names a place that is there.
  private func placed(_ number: Int, _ blob: BlobID) -> BlobRecord? {
    bytes.withBytes { bytes in
      guard let record = layout.record(number, in: bytes), record.id == blob,
        layout.isPlaced(record, bytes)
      else { return nil }
      return record
    }
  }
}

// MARK: - Tables

extension IndexLayout {
  func pack(_ number: Int, in bytes: RawSpan) -> IndexObject.Pack {
    let at = packTable + number * IndexLayout.packSize
    return IndexObject.Pack(
      id: Digest(bytes, at: at), size: bytes.integer(at: at + 32, as: UInt64.self),
      firstFrame: Int(bytes.integer(at: at + 40, as: UInt32.self)),
      frames: Int(bytes.integer(at: at + 44, as: UInt32.self)))
  }

  func frame(_ number: Int, in bytes: RawSpan) -> FrameLocation {
    let at = frameTable + number * IndexLayout.frameSize
    return FrameLocation(
      offset: bytes.integer(at: at, as: UInt64.self),
      stored: bytes.integer(at: at + 8, as: UInt32.self),
      plain: bytes.integer(at: at + 12, as: UInt32.self))
  }

  func record(_ number: Int, in bytes: RawSpan) -> BlobRecord? {
    BlobRecord(bytes, at: blobTable + number * BlobRecord.size)
  }

  /// How many blobs of a kind lie in the slots up to this one.
  func fanOut(_ kind: BlobKind, _ slot: Int, in bytes: RawSpan) -> Int {
    Int(bytes.integer(at: fanOut(of: kind) + 4 * slot, as: UInt32.self))
  }

  /// Whether an entry names a pack and a frame that are there, and lies within the frame.
  func isPlaced(_ record: BlobRecord, _ bytes: RawSpan) -> Bool {
    guard record.pack < packs else { return false }
    let pack = pack(Int(record.pack), in: bytes)
    let frame = pack.firstFrame + Int(record.frame)
    return record.frame < pack.frames && frame < frames
      && record.fits(in: self.frame(frame, in: bytes).plain)
  }
}

internal import Codecs
internal import SystemIO

/// An index object, searched in place: the location of each blob of some packs.
///
/// It is checked completely before its first use: the bounds of the tables, the order of the
/// entries, and that each entry names a frame of its pack and lies within it. Lookups check bounds
/// again, because a mapped file can change.
struct IndexObject: Sendable {
  let id: Digest
  let bytes: Bytes
  let layout: Layout

  /// An entry of the pack table.
  struct Pack: Hashable, Sendable {
    let id: Digest
    let size: UInt64
    let firstFrame: Int
    let frames: Int
  }

  /// Opens an index after verifying its bytes against its id and checking its format.
  init(id: Digest, bytes: [UInt8]) throws(StoreError) {
    try self.init(id: id, SpillableArray(bytes), digest: Blake2b.hash(bytes))
  }

  /// Reads an index object, a large one in pieces, and opens it like `init(id:bytes:)`.
  ///
  /// - Parameter pieceLength: the number of bytes to read at a time.
  static func load(
    _ id: Digest, from storage: any Storage, by pieceLength: Int = 4 << 20
  ) throws(StoreError) -> IndexObject {
    let path = RepositoryLayout.index(id)
    guard let size = try storage.status(path)?.size else { throw .missing("\(path)") }
    guard size <= UInt64(FormatLimit.index) else {
      throw .damaged("\(path)", "it has \(size) bytes, more than an index object may have")
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
      throw .damaged(Self.name(id), "its content does not match its id")
    }
    try self.init(id: id, checked: .memory(bytes))
    if let fault = firstFault() { throw .damaged(Self.name(id), fault) }
  }

  /// Opens an index that was checked before.
  init(id: Digest, checked bytes: Bytes) throws(StoreError) {
    self.id = id
    self.bytes = bytes
    layout = try bytes.withBytes { bytes throws(StoreError) in
      try Layout(headerOf: bytes, object: Self.name(id))
    }
  }

  /// The name of the object in messages.
  static func name(_ id: Digest) -> String { "index/\(id.hex).index" }

  var packs: Int { layout.packs }
  var blobs: Int { layout.blobs }

  /// Returns a pack by its index in the table.
  func pack(_ number: Int) -> Pack { bytes.withBytes { layout.pack(number, in: $0) } }

  /// Returns a frame by its index in the frame table of all packs.
  func frame(_ number: Int) -> FrameLocation { bytes.withBytes { layout.frame(number, in: $0) } }

  /// Returns the entry of a blob by its index in the table, or nil if it is invalid.
  func record(_ number: Int) -> BlobRecord? { bytes.withBytes { layout.record(number, in: $0) } }

  /// Returns the first entry of a blob, or nil if there is none.
  func find(_ blob: BlobID) -> BlobRecord? { firstEntry(of: blob).flatMap { entry($0, blob) } }

  /// Returns the entries of a blob, one for each pack that holds it.
  func findAll(_ blob: BlobID) -> [BlobRecord] {
    var found: [BlobRecord] = []
    _ = first(blob) { record in
      found.append(record)
      return false
    }
    return found
  }

  /// Returns the first entry of a blob for which `isSelected` returns true, or nil if there is none.
  func first(_ blob: BlobID, where isSelected: (BlobRecord) -> Bool) -> BlobRecord? {
    guard var number = firstEntry(of: blob) else { return nil }
    while number < blobs, let record = entry(number, blob) {
      if isSelected(record) { return record }
      number += 1
    }
    return nil
  }

  /// Returns the indices of all entries of a blob in the table.
  func entries(of blob: BlobID) -> Range<Int> {
    guard let first = firstEntry(of: blob) else { return 0..<0 }
    var end = first
    while end < blobs, record(end)?.id == blob { end += 1 }
    return first..<end
  }

  /// Returns the index of a blob's first entry by binary search within its slot.
  private func firstEntry(of blob: BlobID) -> Int? {
    bytes.withBytes { bytes in
      let kind = Int(blob.kind.rawValue)
      let slot = Layout.slot(blob.digest, bits: layout.fanOutBits[kind])
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

  /// Returns an entry if it belongs to the blob and names an existing location, and nil otherwise.
  private func entry(_ number: Int, _ blob: BlobID) -> BlobRecord? {
    bytes.withBytes { bytes in
      guard let record = layout.record(number, in: bytes), record.id == blob,
        layout.fitsFrame(record, bytes)
      else { return nil }
      return record
    }
  }
}

extension IndexObject {
  /// The bytes of an index object, either in memory that can spill or mapped from this host's copy.
  enum Bytes: Sendable {
    case memory(SpillableArray<UInt8>)
    case mapped(MappedFile)

    var count: Int {
      switch self {
      case .memory(let bytes): bytes.count
      case .mapped(let file): file.count
      }
    }

    @inline(__always)
    func withBytes<Result, Failure: Error>(
      _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
      switch self {
      case .memory(let bytes):
        return try bytes.withSpan { span throws(Failure) in try body(span.bytes) }
      case .mapped(let file): return try file.withBytes(body)
      }
    }
  }

  /// The packs that it names.
  var packIDs: [Digest] { (0..<packs).map { pack($0).id } }

  /// Returns a pack with its frames.
  func whole(_ number: Int) -> PackTables.Pack {
    let pack = pack(number)
    return PackTables.Pack(
      id: pack.id, size: pack.size,
      frames: (0..<pack.frames).map { frame(pack.firstFrame + $0) })
  }
}

// MARK: - Opening

extension IndexObject {
  /// Opens one object and verifies its bytes against its id.
  static func open(
    _ id: Digest, from storage: any Storage, cache: IndexCache? = nil
  ) throws(StoreError) -> IndexObject {
    if let object = try cache?.object(id, of: storage) { return object }
    return try load(id, from: storage)
  }

  /// Reads the object from the storage and verifies it, regardless of this host's copy.
  static func readAgain(
    _ id: Digest, from storage: any Storage, cache: IndexCache? = nil
  ) throws(StoreError) -> IndexObject {
    if let object = try cache?.readAgain(id, of: storage) { return object }
    return try open(id, from: storage)
  }
}

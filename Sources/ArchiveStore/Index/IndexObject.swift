internal import Codecs
internal import SystemIO

/// An index object, searched in place: the location of each blob of some packs.
///
/// It is checked completely before its first use: the bounds of the tables, the order of the
/// entries, and that each entry names a frame of its pack and lies within it. Lookups check bounds
/// again, because a mapped file can change.
struct IndexObject: Sendable {
  let id: Digest
  /// The content.
  let bytes: Bytes
  let layout: Layout
  /// The stored size in bytes, which is larger than the content's if the object is encrypted.
  let storedSize: UInt64

  /// An entry of the pack table.
  struct Pack: Hashable, Sendable {
    let id: Digest
    let size: UInt64
    let firstFrame: Int
    let frames: Int
  }

  /// Opens an index after checking the format of its content. The stored bytes were compared with
  /// the id.
  init(
    id: Digest, content: SpillableArray<UInt8>, storedSize: UInt64
  ) throws(StoreError) {
    try self.init(id: id, checked: .memory(content), storedSize: storedSize)
    if let fault = firstFault() {
      throw .damaged("\(Self.path(id, .memory(content), storedSize: storedSize))", fault)
    }
  }

  /// Reads an index object in pieces, verifies it against its id and checks its format.
  ///
  /// - Parameters:
  ///   - pieceLength: the number of bytes to read at a time.
  ///   - listed: the size of the object in a listing; nil to ask for it.
  static func load(
    _ id: Digest, from storage: RepositoryStorage, by pieceLength: Int = 4 << 20,
    listed: UInt64? = nil
  ) throws(StoreError) -> IndexObject {
    let path = storage.layout.index(id)
    var found = listed
    if found == nil { found = try storage.status(path)?.size }
    guard let size = found else { throw .missing("\(path)") }
    guard size <= UInt64(storage.storedLimit(of: FormatLimit.index)) else {
      throw .damaged("\(path)", "it has \(size) bytes, more than an index object may have")
    }
    return try storage.readingTwice(path) { () throws(StoreError) in
      var bytes = SpillableArray<UInt8>()
      bytes.reserve(Int(size))
      try storage.forEachPiece(of: id, kind: .index, size: size, by: pieceLength) {
        piece throws(StoreError) in
        bytes.append(piece.span)
      }
      return try IndexObject(id: id, content: bytes, storedSize: size)
    }
  }

  /// Opens an index that was checked before.
  init(id: Digest, checked bytes: Bytes, storedSize: UInt64) throws(StoreError) {
    self.id = id
    self.bytes = bytes
    self.storedSize = storedSize
    let path = Self.path(id, bytes, storedSize: storedSize)
    layout = try bytes.withBytes { bytes throws(StoreError) in
      try Layout(headerOf: bytes, object: "\(path)")
    }
  }

  /// Returns the path of an object, for messages. An encrypted one is larger than its content.
  private static func path(_ id: Digest, _ content: Bytes, storedSize: UInt64) -> ObjectPath {
    RepositoryLayout(isEncrypted: storedSize > UInt64(content.count)).index(id)
  }

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

  /// Returns the first entry of a blob for which `isSelected` returns true, or nil if there is
  /// none.
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
    _ id: Digest, from storage: RepositoryStorage, cache: IndexCache? = nil
  ) throws(StoreError) -> IndexObject {
    if let object = try cache?.object(id, of: storage) { return object }
    return try load(id, from: storage)
  }

  /// Reads the object from the storage and verifies it, regardless of this host's copy.
  static func readAgain(
    _ id: Digest, from storage: RepositoryStorage, cache: IndexCache? = nil
  ) throws(StoreError) -> IndexObject {
    if let object = try cache?.readAgain(id, of: storage) { return object }
    return try open(id, from: storage)
  }
}

extension Lease {
  /// Saves an index object that was made in memory. Returns it with the id that it has as it is
  /// stored.
  func save(_ object: IndexObject) throws(StoreError) -> IndexObject {
    guard case .memory(let content) = object.bytes else { return object }
    let stored = try storage.encode(Array(content))
    try save(stored.bytes, as: storage.layout.index(stored.id))
    return try IndexObject(id: stored.id, checked: object.bytes, storedSize: stored.size)
  }
}

internal import Codecs

/// Reads and decodes frames for readers that verify each blob against its hash. They do not need
/// the frame's checksum, and can read the intact blobs of a damaged frame.
///
/// A frame on another host may have been changed or cut off in transit. Its checksum is verified,
/// and if it does not match, the frame is read a second time.
struct FrameDecoder: ~Copyable {
  private let storage: RepositoryStorage
  /// Whether the storage is on another host.
  private let verifiesChecksums: Bool
  private var decompressor: ZstdDecompressor
  /// The stored bytes of the frame, and the encrypted ones; kept to reuse their memory.
  private var stored: [UInt8] = []
  private var ciphertext: [UInt8] = []

  init(_ storage: RepositoryStorage) throws(StoreError) {
    try self.init(storage, ignoresChecksums: !storage.isOnAnotherHost)
  }

  private init(_ storage: RepositoryStorage, ignoresChecksums: Bool) throws(StoreError) {
    self.storage = storage
    verifiesChecksums = !ignoresChecksums
    decompressor = try StoreError.wrap(coding: "a frame") { () throws(CodecError) in
      try ZstdDecompressor(ignoresChecksum: ignoresChecksums)
    }
  }

  /// Reads the frame at a location from the index and appends its content to a buffer. If that
  /// fails, the buffer is unchanged.
  mutating func decode(
    _ location: IndexSet.BlobLocation, appendingTo buffer: inout [UInt8]
  ) throws(StoreError) {
    guard location.frame.plain <= FormatLimit.frame,
      location.frame.stored <= FormatLimit.storedFrame
    else {
      throw .damaged(
        "\(storage.layout.pack(location.pack))",
        "frame \(location.frameNumber) exceeds the maximum frame size")
    }
    var bytes: [UInt8] = []
    swap(&bytes, &stored)
    defer { swap(&bytes, &stored) }
    do throws(StoreError) {
      try load(location, into: &bytes)
      try decompress(bytes, of: location, appendingTo: &buffer)
    } catch {
      guard verifiesChecksums, error.code == .damaged else { throw error }
      storage.forgetReads(of: storage.layout.pack(location.pack))
      try load(location, into: &bytes)
      var lenient = try FrameDecoder(storage, ignoresChecksums: true)
      try lenient.decompress(bytes, of: location, appendingTo: &buffer)
    }
  }

  private mutating func load(
    _ location: IndexSet.BlobLocation, into bytes: inout [UInt8]
  ) throws(StoreError) {
    try storage.load(
      pack: location.pack, offset: location.frame.offset, count: Int(location.frame.stored),
      into: &bytes, ciphertext: &ciphertext)
  }

  private mutating func decompress(
    _ bytes: [UInt8], of location: IndexSet.BlobLocation, appendingTo buffer: inout [UInt8]
  ) throws(StoreError) {
    do {
      try decompressor.decompress(
        bytes.span, limit: Int(location.frame.plain), appendingTo: &buffer)
    } catch {
      throw .codec(error, "\(storage.layout.pack(location.pack)), frame \(location.frameNumber)")
    }
  }
}

extension FrameDecoder {
  /// A frame of a pack, by its number.
  struct Key: Hashable {
    let pack: Digest
    let frame: Int
  }

  /// Decoded frames. The cost of one is its size in bytes.
  typealias Cache = CostBoundedCache<Key, [UInt8]>
}

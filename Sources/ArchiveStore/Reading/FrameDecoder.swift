internal import Codecs

/// Reads and decodes frames for readers that verify each blob against its hash. They do not need
/// the frame's checksum, and can read the intact blobs of a damaged frame.
///
/// A frame of another host may have been changed or cut on its way. There the checksum is verified,
/// and a frame that does not match it is read a second time.
struct FrameDecoder: ~Copyable {
  private let storage: RepositoryStorage
  /// Whether the storage is on another host.
  private let verifiesChecksums: Bool
  private var decompressor: ZstdDecompressor
  /// The stored bytes of the frame, and the encrypted ones, kept for their memory.
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
  /// A least-recently-used cache of decoded frames.
  struct Cache {
    struct Key: Hashable {
      let pack: Digest
      let frame: Int
    }

    private struct DecodedFrame {
      let bytes: [UInt8]
      var lastUse: Int
    }

    /// The maximum size of all frames in bytes.
    private(set) var capacity: Int
    /// The number of frames from which several are removed at once, because finding the oldest
    /// looks at all.
    private static let manyFrames = 64
    private var frames: [Key: DecodedFrame] = [:]
    private var size = 0
    private var uses = 0

    /// Creates a cache of at most `capacity` bytes, which always keeps the newest frame.
    init(capacity: Int) { self.capacity = capacity }

    /// Whether nothing is held.
    var isEmpty: Bool { frames.isEmpty }

    /// Whether a frame is held.
    func holds(_ key: Key) -> Bool { frames[key] != nil }

    mutating func frame(_ key: Key) -> [UInt8]? {
      guard let held = frames[key] else { return nil }
      uses += 1
      frames[key]?.lastUse = uses
      return held.bytes
    }

    mutating func insert(_ bytes: [UInt8], _ key: Key) {
      uses += 1
      if let before = frames.updateValue(DecodedFrame(bytes: bytes, lastUse: uses), forKey: key) {
        size -= before.bytes.count
      }
      size += bytes.count
      removeOldest()
    }

    /// Changes the capacity in bytes.
    mutating func setCapacity(_ capacity: Int) {
      self.capacity = capacity
      removeOldest()
    }

    private mutating func removeOldest() {
      guard size > capacity, frames.count > 1 else { return }
      let most = frames.count > Self.manyFrames ? capacity / 4 * 3 : capacity
      for (key, held) in frames.sorted(by: { $0.value.lastUse < $1.value.lastUse }) {
        if size <= most || frames.count == 1 { return }
        size -= held.bytes.count
        frames[key] = nil
      }
    }
  }
}

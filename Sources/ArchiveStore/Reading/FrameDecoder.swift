internal import Codecs

/// Reads frames from packs and decodes them, for readers that hold each blob against its hash: a
/// frame's own checksum proves nothing more to them, and a frame of which a part is damaged gives
/// them the blobs that are whole.
struct FrameDecoder: ~Copyable {
  private let storage: any Storage
  private var decompressor: ZstdDecompressor
  /// The frame as it is stored, kept for its memory.
  private var stored: [UInt8] = []

  init(_ storage: any Storage) throws(StoreError) {
    self.storage = storage
    decompressor = try StoreError.wrap(coding: "a frame") { () throws(CodecError) in
      try ZstdDecompressor(passesChecksumOver: true)
    }
  }

  /// Reads the frame at a place that an index names, and appends its content to a buffer, which is as
  /// before where that fails.
  mutating func decode(
    _ place: IndexSet.Found, appendingTo buffer: inout [UInt8]
  ) throws(StoreError) {
    let path = RepositoryLayout.pack(place.pack)
    let plain = Int(place.frame.plain)
    let stored = Int(place.frame.stored)
    guard plain <= FormatLimit.frame, stored <= FormatLimit.storedFrame else {
      throw .damaged(path.description, "frame \(place.frameNumber) is larger than a frame may be")
    }
    var bytes: [UInt8] = []
    swap(&bytes, &self.stored)
    defer { swap(&bytes, &self.stored) }
    try storage.load(path, offset: place.frame.offset, count: stored, into: &bytes)
    do {
      try decompressor.decompress(bytes.span, limit: plain, appendingTo: &buffer)
    } catch { throw .codec(error, "\(path), frame \(place.frameNumber)") }
  }
}

public import Codecs
internal import SystemIO

/// Reads what a repository holds; nothing is given before it was held against its hash.
///
/// Holds the index and up to 48 MiB of decoded frames; not for two threads at once. Takes no lease:
/// when a pack is gone, the index is loaded once more before that is called damage.
public final class RepositoryReader {
  public let repository: Repository
  private var index: IndexSet
  private var dataFrames = FrameCache(capacity: 32 << 20)
  private var treeFrames = FrameCache(capacity: 16 << 20)
  private var decompressor: ZstdDecompressor
  /// Packs that an index names and that are not there.
  private var gone: Set<Digest> = []
  /// Frames that were read from storage and decoded.
  public private(set) var decodedFrames = 0

  init(_ repository: Repository) throws(StoreError) {
    self.repository = repository
    index = IndexSet(try IndexLoading.loadAll(from: repository.storage))
    decompressor = try StoreError.wrap(coding: "a frame") { () throws(CodecError) in
      try ZstdDecompressor()
    }
  }

  /// Where a blob lies; nothing when no index names it.
  public func locate(_ blob: BlobID) -> BlobLocation? {
    index.find(blob).map {
      BlobLocation(pack: $0.pack, frame: $0.frameNumber, offset: $0.offset, length: $0.length)
    }
  }

  /// Gives a blob's bytes.
  public func readBlob(_ blob: BlobID) throws(StoreError) -> [UInt8] {
    let (frame, range) = try find(blob)
    return Array(frame[range])
  }

  /// The frame that holds a blob, and where in it the blob lies; its hash is checked.
  func find(_ blob: BlobID) throws(StoreError) -> (frame: [UInt8], range: Range<Int>) {
    let (frame, place) = try frame(of: blob)
    let range = place.offset..<(place.offset + place.length)
    guard range.upperBound <= frame.count,
      Blake2b.hash(frame.span.extracting(range)) == blob.digest
    else {
      throw .damaged("\(blob)", "pack \(place.pack.hex) holds other bytes at its place")
    }
    return (frame, range)
  }

  /// Another program may have moved the blob: when no index names it, or its pack is gone, the
  /// index is loaded again, and packs that are gone are passed over.
  private func frame(of blob: BlobID) throws(StoreError) -> ([UInt8], IndexSet.Found) {
    for _ in 1...Self.maximumAttempts {
      if let place = index.find(blob) {
        do {
          return (try frame(place, kind: blob.kind), place)
        } catch {
          guard error.code == .missing else { throw error }
          gone.insert(place.pack)
        }
      }
      let gone = gone
      index = IndexSet(try IndexLoading.loadAll(from: repository.storage)) { !gone.contains($0) }
      guard index.contains(blob) else { break }
    }
    throw .missing("\(blob)")
  }

  private static let maximumAttempts = 4

  /// A decoded frame, of the cache or of storage.
  private func frame(
    _ place: IndexSet.Found, kind: BlobKind
  ) throws(StoreError) -> [UInt8] {
    let key = FrameCache.Key(pack: place.pack, frame: place.frameNumber)
    let held = kind == .data ? dataFrames.frame(key) : treeFrames.frame(key)
    if let held { return held }
    let frame = try decode(place)
    if kind == .data { dataFrames.insert(frame, key) } else { treeFrames.insert(frame, key) }
    return frame
  }

  private func decode(_ place: IndexSet.Found) throws(StoreError) -> [UInt8] {
    let path = RepositoryLayout.pack(place.pack)
    let plain = Int(place.frame.plain)
    let stored = Int(place.frame.stored)
    // A frame that does not compress is a little larger than its content, never by a 128th.
    guard plain <= FormatLimit.frame, stored <= FormatLimit.frame + FormatLimit.frame / 128 else {
      throw .damaged(path.description, "frame \(place.frameNumber) is larger than a frame may be")
    }
    let bytes = try repository.storage.load(path, offset: place.frame.offset, count: stored)
    var frame: [UInt8] = []
    do {
      try decompressor.decompress(bytes.span, limit: plain, appendingTo: &frame)
    } catch { throw .codec(error, "\(path), frame \(place.frameNumber)") }
    decodedFrames += 1
    return frame
  }
}

/// Where a blob lies: by it what is to be read can be put in the order of the packs.
public struct BlobLocation: Hashable, Sendable, Comparable {
  public let pack: Digest
  public let frame: Int
  /// First byte in the decoded frame.
  public let offset: Int
  public let length: Int

  public static func < (left: Self, right: Self) -> Bool {
    (left.pack, left.frame, left.offset) < (right.pack, right.frame, right.offset)
  }
}

extension Repository {
  /// Begins reading: loads the index.
  public func beginReading() throws(StoreError) -> RepositoryReader {
    try RepositoryReader(self)
  }
}

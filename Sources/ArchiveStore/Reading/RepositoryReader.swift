public import Codecs
internal import SystemIO

/// Reads what a repository holds; nothing is given before it was held against its hash.
///
/// Holds the index and up to 48 MiB of decoded frames; not for two threads at once. Takes no lease:
/// when a pack is gone, the index is loaded once more before that is called damage.
public final class RepositoryReader {
  public let repository: Repository
  private let cache: IndexCache?
  private(set) var index: IndexSet
  private var dataFrames = FrameCache(capacity: 32 << 20)
  private var treeFrames = FrameCache(capacity: 16 << 20)
  private var decoder: FrameDecoder
  /// Packs that an index names and that are not there.
  private var gone: Set<Digest> = []
  /// Frames that were read from storage and decoded.
  public private(set) var decodedFrames = 0

  /// Reads by an index that is open already.
  init(_ repository: Repository, index: IndexSet, cache: IndexCache?) throws(StoreError) {
    self.repository = repository
    self.cache = cache
    self.index = index
    decoder = try FrameDecoder(repository.storage)
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
      let objects = try IndexLoading.loadAll(from: repository.storage, cache: cache)
      index = IndexSet(objects) { !gone.contains($0) }
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
    var frame: [UInt8] = []
    try decoder.decode(place, into: &frame)
    decodedFrames += 1
    if kind == .data { dataFrames.insert(frame, key) } else { treeFrames.insert(frame, key) }
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
  /// Begins reading: opens the index, by way of the host's copies if there is a cache.
  public func beginReading(cache: IndexCache? = nil) throws(StoreError) -> RepositoryReader {
    let objects = try IndexLoading.loadAll(from: storage, cache: cache)
    return try RepositoryReader(self, index: IndexSet(objects), cache: cache)
  }
}

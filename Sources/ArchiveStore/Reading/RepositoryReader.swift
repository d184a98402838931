package import Codecs
internal import SystemIO

/// Reads the content of a repository. All bytes are verified against their hash before they are
/// returned.
///
/// Holds the index and up to 48 MiB of decoded frames. Not thread-safe. Takes no lease: if a pack
/// is gone, the index is loaded once more before that is reported as damage. An unusable index
/// object has no effect while the packs are intact, because they list their own contents. Of a blob
/// in several packs, any intact copy is used.
package final class RepositoryReader {
  package let repository: Repository
  var index: ReaderIndex
  private var dataFrames = FrameCache(capacity: 32 << 20)
  private var treeFrames = FrameCache(capacity: 16 << 20)
  private var decoder: FrameDecoder
  /// Frames that cannot be read, with the reason.
  private var lostFrames: [FrameCache.Key: StoreError] = [:]
  /// Packs in which damage was found.
  private(set) var damagedPacks: Set<Digest> = []
  /// The monitor of this reader's walks and of the files read by them; nil if there is none.
  package fileprivate(set) var watch: ReadingWatch?
  /// The number of frames that were read from storage and decoded.
  package private(set) var decodedFrames = 0

  /// Reads with an index that is already open.
  init(_ repository: Repository, _ index: ReaderIndex) throws(StoreError) {
    self.repository = repository
    self.index = index
    decoder = try FrameDecoder(repository.storage)
  }

  /// The problems found with the index so far that did not prevent a read.
  package var remarks: [StoreError] { index.remarks }

  /// Returns the location of a blob, or nil if no index names it.
  package func locate(_ blob: BlobID) -> BlobLocation? {
    index.set.find(blob).map {
      BlobLocation(pack: $0.pack, frame: $0.frameNumber, offset: $0.offset, length: $0.length)
    }
  }

  /// Returns the bytes of a blob.
  package func readBlob(_ blob: BlobID) throws(StoreError) -> [UInt8] {
    let (frame, range) = try find(blob)
    return Array(frame[range])
  }

  /// Returns the frame that holds a blob, and the blob's range in it, after verifying the hash.
  ///
  /// Tries all locations in the index, then those in packs that no index object names.
  func find(_ blob: BlobID) throws(StoreError) -> (frame: [UInt8], range: Range<Int>) {
    var failure: StoreError?
    var tried: Set<IndexSet.Found> = []
    repeat {
      for place in index.places(blob) where tried.insert(place).inserted {
        do throws(StoreError) {
          let found = try read(blob, at: place)
          index.noteUse(of: CollectionOfOne(place.pack))
          return found
        } catch {
          guard error.kind == .damaged else { throw error }
          if error.code == .missing {
            index.lose(place.pack)
          } else {
            damagedPacks.insert(place.pack)
            failure = failure ?? error
          }
        }
      }
    } while try index.widen()
    throw failure ?? .missing("\(blob)")
  }

  private func read(
    _ blob: BlobID, at place: IndexSet.Found
  ) throws(StoreError) -> (frame: [UInt8], range: Range<Int>) {
    let frame = try frame(place, kind: blob.kind)
    let range = place.offset..<(place.offset + place.length)
    guard range.upperBound <= frame.count,
      Blake2b.hash(frame.span.extracting(range)) == blob.digest
    else {
      throw .damaged(
        "\(blob)", "\(RepositoryLayout.pack(place.pack)) holds other bytes at its location")
    }
    return (frame, range)
  }

  /// Returns a decoded frame from the cache or the storage. A frame that failed to decode is not
  /// tried again.
  private func frame(
    _ place: IndexSet.Found, kind: BlobKind
  ) throws(StoreError) -> [UInt8] {
    let key = FrameCache.Key(pack: place.pack, frame: place.frameNumber)
    let held = kind == .data ? dataFrames.frame(key) : treeFrames.frame(key)
    if let held { return held }
    if let error = lostFrames[key] { throw error }
    var frame: [UInt8] = []
    do throws(StoreError) {
      try decoder.decode(place, appendingTo: &frame)
    } catch {
      if error.code == .damaged { lostFrames[key] = error }
      throw error
    }
    decodedFrames += 1
    if kind == .data { dataFrames.insert(frame, key) } else { treeFrames.insert(frame, key) }
    return frame
  }
}

/// The location of a blob, ordered by pack, frame and offset.
package struct BlobLocation: Hashable, Sendable, Comparable {
  package let pack: Digest
  package let frame: Int
  /// The offset in the decoded frame.
  package let offset: Int
  package let length: Int

  package static func < (left: Self, right: Self) -> Bool {
    (left.pack, left.frame, left.offset) < (right.pack, right.frame, right.offset)
  }
}

extension Repository {
  /// Begins to read: opens the index, through this host's copies if there is a cache. Unusable
  /// index objects are among the reader's remarks.
  package func beginReading(
    cache: IndexCache? = nil, watch: ReadingWatch? = nil
  ) throws(StoreError) -> RepositoryReader {
    let reader = try RepositoryReader(self, try ReaderIndex(storage, cache: cache))
    reader.watch = watch
    return reader
  }
}

public import Codecs
internal import SystemIO

/// Reads what a repository holds; nothing is given before it was held against its hash.
///
/// Holds the index and up to 48 MiB of decoded frames; not for two threads at once. Takes no lease:
/// when a pack is gone, the index is loaded once more before that is called damage. An index object
/// that cannot be used costs nothing while the packs are whole: they say themselves what they hold.
/// Of a blob that lies in several packs any whole copy will do.
public final class RepositoryReader {
  public let repository: Repository
  var index: ReaderIndex
  private var dataFrames = FrameCache(capacity: 32 << 20)
  private var treeFrames = FrameCache(capacity: 16 << 20)
  private var decoder: FrameDecoder
  /// Frames that cannot be read, and why.
  private var lostFrames: [FrameCache.Key: StoreError] = [:]
  /// Packs in which something was found damaged.
  private(set) var damagedPacks: Set<Digest> = []
  /// Who follows its walks, and what is given of files by them; nobody at first.
  public fileprivate(set) var watch: ReadingWatch?
  /// Frames that were read from storage and decoded.
  public private(set) var decodedFrames = 0

  /// Reads by an index that is open already.
  init(_ repository: Repository, _ index: ReaderIndex) throws(StoreError) {
    self.repository = repository
    self.index = index
    decoder = try FrameDecoder(repository.storage)
  }

  /// What was amiss with the index, so far, and did not keep anything from being found.
  public var remarks: [StoreError] { index.remarks }

  /// Where a blob lies; nothing when no index names it.
  public func locate(_ blob: BlobID) -> BlobLocation? {
    index.set.find(blob).map {
      BlobLocation(pack: $0.pack, frame: $0.frameNumber, offset: $0.offset, length: $0.length)
    }
  }

  /// Gives a blob's bytes.
  public func readBlob(_ blob: BlobID) throws(StoreError) -> [UInt8] {
    let (frame, range) = try find(blob)
    return Array(frame[range])
  }

  /// The frame that holds a blob, and where in it the blob lies; its hash is checked.
  ///
  /// Every place is tried that the index names, and then those that more packs have.
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
        "\(blob)", "\(RepositoryLayout.pack(place.pack)) holds other bytes at its place")
    }
    return (frame, range)
  }

  /// A decoded frame, of the cache or of storage. One that was not to be had is not tried again.
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
  /// Begins reading: opens the index, by way of the host's copies if there is a cache. Objects of it
  /// that cannot be used are among the reader's remarks.
  public func beginReading(
    cache: IndexCache? = nil, watch: ReadingWatch? = nil
  ) throws(StoreError) -> RepositoryReader {
    let reader = try RepositoryReader(self, try ReaderIndex(storage, cache: cache))
    reader.watch = watch
    return reader
  }
}

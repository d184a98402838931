package import Codecs
internal import Synchronization
internal import SystemIO

/// Reads the content of a repository for several threads at once, and for as long as the program
/// runs. All bytes are verified against their hash before they are returned.
///
/// Holds the index and decoded frames of at most 64 MiB, 48 of data and 16 of trees and lists, plus
/// the frames that callers hold. Threads that need the same frame wait for the first one. Damage is
/// handled as by `RepositoryReader`. Snapshots that were made later are readable after `refresh()`.
package final class SharedReader: Sendable {
  package let repository: Repository
  private let storage: RepositoryStorage
  private let index: Mutex<IndexState>
  private let dataFrames: FrameTable
  private let treeFrames: FrameTable
  /// Decoders that no thread uses.
  private let decoders = Mutex<[Decoder]>([])
  /// The lease under which packs that this reader may need stay; nil if it has none.
  private let lease: ReaderLease?

  /// The maximum size of decoded frames of data, and of trees and lists, in bytes.
  package static let dataCapacity = 48 << 20
  package static let treeCapacity = 16 << 20

  /// The seconds after which damaged frames and missing packs are looked for again. A file system
  /// on another host reports an outage as damage, or is empty while it is not mounted.
  static let retryInterval = 60.0
  private let clock: @Sendable () -> Double

  /// The index and the number of times that it was extended.
  private struct IndexState {
    var index: ReaderIndex
    var generation = 0
    /// The time at which a pack or a blob was first found missing since all were looked for.
    var lostSince: Double?

    /// Looks for all packs again if it is time to.
    mutating func retry(at now: Double) {
      guard let since = lostSince, now - since >= SharedReader.retryInterval else { return }
      lostSince = nil
      index.forgetLost()
      generation += 1
    }
  }

  fileprivate init(
    _ repository: Repository, _ index: ReaderIndex, lease: ReaderLease?, dataCapacity: Int,
    clock: @escaping @Sendable () -> Double
  ) {
    self.repository = repository
    self.lease = lease
    self.clock = clock
    storage = repository.storage
    self.index = Mutex(IndexState(index: index))
    dataFrames = FrameTable(capacity: dataCapacity, clock: clock)
    treeFrames = FrameTable(capacity: Self.treeCapacity, clock: clock)
  }

  /// The problems found with the index so far that did not prevent a read.
  package var remarks: [StoreError] { index.withLock { $0.index.remarks } }

  /// The number of frames that were read from storage and decoded.
  package var decodedFrames: Int { dataFrames.decoded + treeFrames.decoded }

  /// The size of the decoded frames that are held, in bytes.
  package var heldBytes: Int { dataFrames.heldBytes + treeFrames.heldBytes }

  /// The size of all packs in bytes.
  package var packedBytes: UInt64 { index.withLock { $0.index.packedBytes } }

  /// Ends the lease.
  package func releaseLease() { lease?.release() }

  /// Loads the index objects that were added in the meantime.
  package func refresh() throws(StoreError) {
    try index.withLock { state throws(StoreError) in
      try state.index.refresh()
      state.generation += 1
    }
  }

  /// Returns a blob after verifying its hash. Tries all locations in the index, then those in packs
  /// that no index object names.
  ///
  /// - Throws: `damaged` or `missing` if there is no intact copy, the refusal if this user may not
  ///   read a copy or a pack that may hold one, and other errors of the storage.
  package func find(_ blob: BlobID) throws(StoreError) -> Slice {
    var (failure, refusal): (StoreError?, StoreError?)
    var tried: [IndexSet.BlobLocation] = []
    var generation = 0
    index.withLock { if $0.lostSince != nil { $0.retry(at: clock()) } }
    repeat {
      let locations = index.withLock { state in
        generation = state.generation
        return state.index.locations(blob)
      }
      for location in locations where !tried.contains(location) {
        tried.append(location)
        do throws(StoreError) {
          let found = try read(blob, at: location)
          index.withLock { $0.index.recordUse(of: CollectionOfOne(location.pack)) }
          return found
        } catch {
          guard error.kind == .damaged || error.isRefused else { throw error }
          if error.code == .missing {
            index.withLock { state in
              state.index.markLost(location.pack)
              state.lostSince = state.lostSince ?? clock()
            }
          } else if error.isRefused {
            refusal = refusal ?? error
          } else {
            failure = failure ?? error
          }
        }
      }
    } while try widen(since: generation)
    if let refusal { throw refusal }
    let missing = StoreError.missing("\(blob)")
    let error = failure ?? lease?.explain(missing) ?? missing
    guard error.code == .missing else { throw error }
    throw index.withLock { state in
      state.lostSince = state.lostSince ?? clock()
      return state.index.refusal(of: blob)
    } ?? error
  }

  /// Returns a data blob of an expected length if its frame is held, after verifying its hash. Nil
  /// if the frame would have to be read, or if the blob is damaged there: `find` tells which.
  package func heldData(_ digest: Digest, length: UInt64) -> Slice? {
    let blob = BlobID(kind: .data, digest: digest)
    for location in index.withLock({ $0.index.locations(blob) }) {
      let key = FrameDecoder.Key(pack: location.pack, frame: location.frameNumber)
      guard location.length == Int(clamping: length), let frame = dataFrames.held(key) else {
        continue
      }
      if let slice = try? slice(blob, of: frame, at: location) { return slice }
    }
    return nil
  }

  /// Looks for more packs, unless another thread has since. Returns whether there may be any.
  private func widen(since generation: Int) throws(StoreError) -> Bool {
    try index.withLock { state throws(StoreError) in
      if state.generation != generation { return true }
      guard try state.index.widen() else { return false }
      state.generation += 1
      return true
    }
  }

  private func read(
    _ blob: BlobID, at location: IndexSet.BlobLocation
  ) throws(StoreError) -> Slice {
    let table = blob.kind == .data ? dataFrames : treeFrames
    let key = FrameDecoder.Key(pack: location.pack, frame: location.frameNumber)
    let frame = try table.frame(key) { () throws(StoreError) in try decode(location) }
    do throws(StoreError) {
      return try slice(blob, of: frame, at: location)
    } catch {
      // It may have been read incorrectly a while ago.
      let again = try table.renew(frame, key) { () throws(StoreError) in try decode(location) }
      guard let again else { throw error }
      return try slice(blob, of: again, at: location)
    }
  }

  /// Returns a blob in a decoded frame after verifying its hash.
  private func slice(
    _ blob: BlobID, of frame: Frame, at location: IndexSet.BlobLocation
  ) throws(StoreError) -> Slice {
    let range = location.offset..<(location.offset + location.length)
    guard range.upperBound <= frame.bytes.count, frame.isWhole(range, blob.digest) else {
      throw .damaged(
        "\(blob)",
        "the data at its location in \(storage.layout.pack(location.pack)) does not match its hash")
    }
    return Slice(frame: frame, range: range)
  }

  private func decode(_ location: IndexSet.BlobLocation) throws(StoreError) -> Frame {
    let decoder: Decoder
    if let free = decoders.withLock({ $0.popLast() }) {
      decoder = free
    } else {
      decoder = try Decoder(storage)
    }
    defer { decoders.withLock { $0.append(decoder) } }
    var bytes: [UInt8] = []
    try decoder.decoder.decode(location, appendingTo: &bytes)
    return Frame(bytes, decodedAt: clock())
  }

  /// A decoder that one thread uses at a time.
  private final class Decoder: @unchecked Sendable {
    // Unchecked: it is either in `decoders` or with the thread that took it.
    var decoder: FrameDecoder

    init(_ storage: RepositoryStorage) throws(StoreError) { decoder = try FrameDecoder(storage) }
  }
}

extension Repository {
  /// Begins to read for several threads.
  ///
  /// - Parameters:
  ///   - lease: a lease that was taken before; the reader releases it when it is deallocated.
  ///   - dataCapacity: the maximum size of decoded frames of data, in bytes.
  ///   - clock: the seconds of a monotonic clock.
  package func beginSharedReading(
    cache: IndexCache? = nil, lease: ReaderLease? = nil,
    dataCapacity: Int = SharedReader.dataCapacity,
    clock: @escaping @Sendable () -> Double = { Host.monotonicSeconds() }
  ) throws(StoreError) -> SharedReader {
    try storage.requireReadable()
    return SharedReader(
      self, try ReaderIndex(storage, cache: cache), lease: lease, dataCapacity: dataCapacity,
      clock: clock)
  }
}

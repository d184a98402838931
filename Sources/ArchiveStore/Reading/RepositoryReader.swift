public import Codecs
internal import SystemIO

/// Reads the content of a repository. All bytes are verified against their hash before they are
/// returned.
///
/// Holds the index and up to 48 MiB of decoded frames. Not thread-safe. Takes no lease: if a pack
/// is gone, the index is loaded once more before that is reported as damage, or as `busy` if index
/// objects were removed meanwhile. An unusable index object has no effect while the packs are
/// intact, because they list their own contents. If several packs hold a blob, any intact copy is
/// used.
public final class RepositoryReader {
  public let repository: Repository
  var index: ReaderIndex
  private var dataFrames = FrameDecoder.Cache(capacity: RepositoryReader.dataCapacity)
  private var treeFrames = FrameDecoder.Cache(capacity: RepositoryReader.treeCapacity)
  /// The usual capacities for frames of data, and of trees and lists, in bytes.
  private static let dataCapacity = 32 << 20
  private static let treeCapacity = 16 << 20
  private var decoder: FrameDecoder
  /// Frames that cannot be read, with the reason.
  private var lostFrames: [FrameDecoder.Key: StoreError] = [:]
  /// Packs in which damage was found.
  private(set) var damagedPacks: Set<Digest> = []
  /// The packs that this user may not read, if the reader continues without them
  /// (`continueWithoutRefused`); nil otherwise.
  private(set) var refusedPacks: [Digest: StoreError]?
  /// The monitor of this reader's walks and of the files read by them; nil if there is none.
  package fileprivate(set) var watch: ReadingWatch?
  /// The lease under which packs that this reader may need stay; nil if it has none.
  var lease: ReaderLease?
  /// The number of frames that were read from storage and decoded.
  public private(set) var decodedFrames = 0
  private var hasExpectedTrees = false
  /// Whether trees that `expect` has named are still being fetched or held.
  private var isExpecting = false
  /// The stored sizes of packs, once they are needed.
  private var packSizes: [Digest: UInt64]?
  /// The lease that is still being taken; nil if there is none.
  var early: EarlyLease?
  /// The snapshots that were listed under a lease taken alongside the first reads.
  var listedSnapshots: Set<Digest>?
  /// The error for data that is missing after the first lease expired, until the existence of the
  /// snapshot is checked (`requireKept(_:)`); nil otherwise.
  var unkept: StoreError?
  /// The end of the lease, once nothing more is read.
  var end: LeaseEnd?

  /// Reads with an index that is already open.
  init(_ repository: Repository, _ index: ReaderIndex) throws(StoreError) {
    self.repository = repository
    self.index = index
    decoder = try FrameDecoder(repository.storage)
  }

  /// The problems found with the index so far that did not prevent a read.
  public var remarks: [StoreError] { index.remarks }

  /// Returns the bytes of a blob.
  public func readBlob(_ blob: BlobID) throws(StoreError) -> [UInt8] {
    let (frame, range) = try find(blob)
    return Array(frame[range])
  }

  /// Returns the frame that holds a blob, and the blob's range in it, after verifying the hash.
  ///
  /// Tries all locations in the index, then those in packs that no index object names.
  func find(_ blob: BlobID) throws(StoreError) -> (frame: [UInt8], range: Range<Int>) {
    if blob.kind == .data { try settleLease() }
    var (failure, refusal): (StoreError?, StoreError?)
    var tried: [IndexSet.BlobLocation] = []
    repeat {
      for location in index.locations(blob) where !tried.contains(location) {
        tried.append(location)
        do throws(StoreError) {
          let found = try read(blob, at: location)
          index.recordUse(of: CollectionOfOne(location.pack))
          return found
        } catch {
          guard error.kind == .damaged || error.isRefused else { throw error }
          if error.code == .missing {
            index.markLost(location.pack)
          } else if error.isRefused {
            refusedPacks?[location.pack] = error
            refusal = refusal ?? error
          } else {
            damagedPacks.insert(location.pack)
            failure = failure ?? inPack(location.pack, error, reading: blob)
          }
        }
      }
    } while try widen()
    // The copy that cannot be read may be intact.
    if let refusal { throw refusedPacks == nil ? refusal : refusal.asDamage }
    let error = failure ?? unkept ?? explain(.missing("\(blob)"))
    guard error.code == .missing, let refusal = index.refusal(of: blob) else { throw error }
    throw refusedPacks == nil ? refusal : refusal.asMissing("\(blob)")
  }

  /// Lets walks continue without packs that this user may not read, as without damaged ones. Their
  /// errors are then reported as damage, with `isRefused`, and the packs are in `refusedPacks`. The
  /// error for an unindexed blob that may be in a refused pack has the code `missing`.
  func continueWithoutRefused() { refusedPacks = refusedPacks ?? [:] }

  /// Returns the error to report for a blob that no pack has. Without a lease, another program may
  /// have removed it.
  private func explain(_ missing: StoreError) -> StoreError {
    if let lease { return lease.explain(missing) }
    guard index.hasShrunk else { return missing }
    return StoreError(
      .busy, "finish reading", subject: repository.location,
      reason: "another program has removed objects meanwhile", hint: "run the command again")
  }

  /// Looks for more packs, including by the listings under a lease that is still being taken.
  /// Returns whether there may be any.
  private func widen() throws(StoreError) -> Bool {
    if try index.widen() { return true }
    guard early != nil else { return false }
    try settleLease()
    return true
  }

  private func read(
    _ blob: BlobID, at location: IndexSet.BlobLocation
  ) throws(StoreError) -> (frame: [UInt8], range: Range<Int>) {
    let frame = try frame(location, kind: blob.kind)
    let range = location.offset..<(location.offset + location.length)
    guard range.upperBound <= frame.count,
      Blake2b.hash(frame.span.extracting(range)) == blob.digest
    else {
      throw .damaged(
        "\(blob)",
        "the data at its location in \(repository.storage.layout.pack(location.pack)) does not match its hash"
      )
    }
    return (frame, range)
  }

  /// Returns the error for a blob whose pack is damaged. Its reason names the pack: messages about
  /// a path have the reason alone.
  private func inPack(
    _ pack: Digest, _ error: StoreError, reading blob: BlobID
  ) -> StoreError {
    let path = "\(repository.storage.layout.pack(pack))"
    if error.reason.contains(path) { return error }
    let place = error.subject.hasPrefix(path) ? error.subject : path
    return StoreError(
      error.code, "read", subject: "\(blob)", reason: "\(place): \(error.reason)",
      hint: error.hint, cause: error.cause)
  }

  /// Returns a decoded frame from the cache or the storage. A frame that failed to decode is not
  /// tried again.
  private func frame(
    _ location: IndexSet.BlobLocation, kind: BlobKind
  ) throws(StoreError) -> [UInt8] {
    let key = FrameDecoder.Key(pack: location.pack, frame: location.frameNumber)
    let held = kind == .data ? dataFrames.value(key) : treeFrames.value(key)
    if let held { return held }
    if let error = lostFrames[key] { throw error }
    var frame: [UInt8] = []
    do throws(StoreError) {
      try decoder.decode(location, appendingTo: &frame)
    } catch {
      if error.code == .damaged { lostFrames[key] = error }
      throw error
    }
    decodedFrames += 1
    if kind == .data {
      // From now on the memory is for data.
      if treeFrames.capacity > Self.treeCapacity { treeFrames.setCapacity(Self.treeCapacity) }
      dataFrames.insert(frame, for: key, cost: frame.count)
    } else {
      treeFrames.insert(frame, for: key, cost: frame.count)
    }
    return frame
  }

  /// The maximum total size of trees and lists that are fetched ahead, in bytes: that of one piece.
  private static let treesAhead: UInt64 = 4 << 20

  /// Whether each read waits for another host.
  package var readsFromAnotherHost: Bool { repository.storage.isOnAnotherHost }

  /// Fetches the trees of directories ahead, all at once, if they are on another host: a caller
  /// that opens them in this order waits for one answer instead of one for each. Ends the previous
  /// prefetch. A caller that has opened the last ones calls `endExpecting`.
  package func expect(_ trees: some Collection<TreeReference>) {
    let storage = repository.storage
    guard trees.count > 1, readsFromAnotherHost else { return }
    var ranges: [(pack: Digest, content: Range<UInt64>)] = []
    var keys: Set<FrameDecoder.Key> = []
    for tree in trees {
      guard let location = index.locations(BlobID(kind: .tree, digest: tree.digest)).first else {
        continue
      }
      let key = FrameDecoder.Key(pack: location.pack, frame: location.frameNumber)
      guard keys.insert(key).inserted, !treeFrames.holds(key) else { continue }
      ranges.append((location.pack, location.frame.range))
    }
    guard ranges.count > 1 else { return }
    isExpecting = true
    // A pack that was added since is read without being expected.
    let sizes = packSizes ?? index.packSizes
    packSizes = sizes
    storage.expect(ranges, sizes: sizes)
  }

  /// Stops fetching ahead what `expect` has named.
  package func endExpecting() {
    guard isExpecting else { return }
    isExpecting = false
    repository.storage.expect([], sizes: [:])
  }

  /// Fetches all trees and lists ahead, before a walk of most of them, if they are on another host
  /// and few. Otherwise the walk would wait for one part after another. Only the first call has an
  /// effect.
  package func expectTrees() {
    let storage = repository.storage
    guard !hasExpectedTrees, storage.isOnAnotherHost else { return }
    hasExpectedTrees = true
    guard let frames = index.set.treeFrames(limit: Self.treesAhead) else { return }
    storage.expect(frames, sizes: index.packSizes)
  }

  /// Uses the memory of both caches for trees until data is read. A walk of the trees of many
  /// snapshots finds the versions of one directory after another in the frames of all runs, and so
  /// returns to each frame for each directory that changed in its run.
  func holdMoreTrees() {
    if dataFrames.isEmpty { treeFrames.setCapacity(Self.dataCapacity + Self.treeCapacity) }
  }
}

extension Repository {
  /// Begins to read: opens the index, through this host's copies if there is a cache. Unusable
  /// index objects are among the reader's remarks.
  ///
  /// - Parameter lease: a lease that was taken before, for work that takes long; the reader
  ///   releases it when it is deallocated.
  public func beginReading(
    cache: IndexCache? = nil, watch: ReadingWatch? = nil, lease: ReaderLease? = nil
  ) throws(StoreError) -> RepositoryReader {
    try storage.requireReadable()
    let reader = try RepositoryReader(self, try ReaderIndex(storage, cache: cache))
    reader.watch = watch
    reader.lease = lease
    if let lease { watch?.hold(lease) }
    return reader
  }
}

// MARK: - Content

extension RepositoryReader {
  /// Passes the blobs of a file in order, each with its offset in the file. Ranges not passed, up
  /// to the content's size, are holes. The span is valid only during the call.
  ///
  /// - Throws: `StoreError` if content cannot be read, and any error of `body`.
  public func readContent(
    _ content: Content, _ body: (UInt64, Span<UInt8>) throws -> Void
  ) throws {
    try forEachPiece(of: content) { offset, piece in
      guard case .blob(let digest, let length) = piece else { return }
      let (frame, range) = try findData(digest, length: length)
      try body(offset, frame.span.extracting(range))
    }
  }

  /// Passes the pieces of a file in order, each with its offset in the file, and resolves lists.
  public func forEachPiece(
    of content: Content, _ body: (UInt64, Piece) throws -> Void
  ) throws {
    try forEachPiece(content.pieces[...], level: content.level, body)
  }

  /// Passes the pieces in lists of a level (`Content.level`) in order, each with its offset.
  public func forEachPiece(
    _ pieces: ArraySlice<Piece>, level: UInt8, _ body: (UInt64, Piece) throws -> Void
  ) throws {
    try forEachPiece(pieces, level: level, from: 0, body)
  }

  private func forEachPiece(
    _ pieces: ArraySlice<Piece>, level: UInt8, from start: UInt64,
    _ body: (UInt64, Piece) throws -> Void
  ) throws {
    var offset = start
    for piece in pieces {
      if level > 0, case .blob(let digest, let length) = piece {
        let list = try self.pieces(ofList: digest, level: level - 1, length: length)
        try forEachPiece(list[...], level: level - 1, from: offset, body)
      } else {
        try body(offset, piece)
      }
      offset += piece.length
    }
  }

  /// Reads a list of pieces, which must cover exactly `length` bytes of the file. The pieces of a
  /// level above 0 are lists themselves.
  public func pieces(
    ofList digest: Digest, level: UInt8, length: UInt64
  ) throws(StoreError) -> [Piece] {
    let blob = BlobID(kind: .list, digest: digest)
    let bytes = try readBlob(blob)
    return try ContentCoding.decodeList(bytes, level: level, length: length, object: "\(blob)")
  }

  /// Returns the value of an extended attribute.
  public func value(of attribute: Attribute) throws(StoreError) -> [UInt8] {
    switch attribute.value {
    case .inline(let value): return value
    case .blob(let digest, let length): return try readData(digest, length: length)
    }
  }

  /// Returns the bytes of a data blob of an expected length.
  ///
  /// - Throws: `damaged` if it has another length or no intact pack has it, and failures to read.
  public func readData(_ digest: Digest, length: UInt64) throws(StoreError) -> [UInt8] {
    let (frame, range) = try findData(digest, length: length)
    return Array(frame[range])
  }

  private func findData(
    _ digest: Digest, length: UInt64
  ) throws(StoreError) -> (frame: [UInt8], range: Range<Int>) {
    let found = try find(BlobID(kind: .data, digest: digest))
    guard found.range.count == length else {
      throw .wrongLength(of: digest, found.range.count, needed: length)
    }
    return found
  }
}

extension StoreError {
  /// Returns the error for a data blob of another length than a snapshot needs.
  static func wrongLength(of digest: Digest, _ length: Int, needed: UInt64) -> StoreError {
    .damaged(
      "data blob \(digest.hex)",
      "it has \(length) bytes instead of the \(needed) that a snapshot needs")
  }
}

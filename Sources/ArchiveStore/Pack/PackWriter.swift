internal import Codecs
internal import Synchronization
internal import SystemIO

/// An open pack. Any thread may append frames to it, one at a time.
///
/// It becomes an object when it is closed.
final class PackWriter: Sendable {
  /// The stored size in bytes at which a pack is closed: one file and one request for many blobs,
  /// and little to copy when prune rewrites it.
  static let target = 64 << 20

  /// The pack's number in the run.
  let number: Int
  private let lease: Lease
  /// The size in bytes at which the pack is full, before encryption.
  private let target: Int
  /// Whether a following command reads the pack soon. Otherwise it need not stay in the page cache.
  private let isReadSoon: Bool
  private let state: Mutex<State>

  fileprivate struct State: ~Copyable {
    var object: ObjectEncoder
    var frames: [FrameLocation] = []
    var contents = PackTables.Contents()
    /// The size of the content in bytes.
    var size: UInt64 = 0

    init(_ object: consuming ObjectEncoder) { self.object = object }
  }

  /// Opens a pack, which is hashed with the others of `hasher`, or alone.
  init(
    number: Int, lease: Lease, target: Int = target, isReadSoon: Bool,
    hasher: MultiStreamHasher? = nil
  ) throws(StoreError) {
    self.number = number
    self.lease = lease
    self.target = target
    self.isReadSoon = isReadSoon
    let object = try lease.explained { () throws(StoreError) in
      try lease.storage.startEncoding(in: lease.path, hashedBy: hasher)
    }
    state = Mutex(State(object))
  }

  /// The maximum number of blobs in a pack. It is below the format's limit because their table is
  /// in memory while a pack is written or checked.
  private static let maximumBlobs = min(65_536, FormatLimit.blobsPerPack)

  /// Whether a frame with `blobs` blobs belongs in the next pack. One frame is reserved for the
  /// contents.
  func isFull(before blobs: Int) -> Bool {
    state.withLock { state in
      state.size >= target || state.frames.count + 1 >= FormatLimit.framesPerPack
        || state.contents.records.count + blobs > Self.maximumBlobs
    }
  }

  /// Appends a frame and returns its number.
  func append(_ frame: PackFrame) throws(StoreError) -> Int {
    try lease.keepAlive()
    return try state.withLock { state throws(StoreError) in try state.append(frame) }
  }

  /// Writes the contents and the seek table, and makes the pack durable under its name.
  func close() throws(StoreError) -> PackTables.Pack {
    try lease.keepAlive()
    return try state.withLock { state throws(StoreError) in
      let id = try state.finish()
      try lease.explained { () throws(StoreError) in
        try state.object.commit(
          as: lease.storage.layout.pack(id), id: id, isReadSoon: isReadSoon)
      }
      return PackTables.Pack(id: id, size: state.object.size, frames: state.frames)
    }
  }

  func discard() { state.withLock { $0.object.discard() } }
}

extension PackWriter.State {
  mutating func append(_ frame: PackFrame) throws(StoreError) -> Int {
    let number = frames.count
    for blob in frame.blobs {
      contents.records.append(
        BlobRecord(
          id: blob.id, frame: UInt16(number), offset: UInt32(blob.offset),
          length: UInt32(blob.length)))
    }
    frames.append(
      FrameLocation(offset: size, stored: UInt32(frame.stored.count), plain: UInt32(frame.plain)))
    try append(frame.stored)
    return number
  }

  private mutating func append(_ bytes: [UInt8]) throws(StoreError) {
    try object.append(bytes)
    size += UInt64(bytes.count)
  }

  /// Appends the contents and the seek table, and returns the pack's id.
  mutating func finish() throws(StoreError) -> Digest {
    // The thread that failed to write may not have ended the run yet.
    if object.isTorn { throw .invalid("a pack", "an earlier write to it failed") }
    var builder = try FrameBuilder(limit: FormatLimit.frame)
    var encoder = try FrameEncoder()
    let table = contents.encode()
    _ = try builder.append(
      TarMember(path: Array(PackTables.Contents.memberName.bytes), size: table.count),
      bytes: table.span, blobs: [])
    if let frame = builder.finish(withEnd: true) { _ = try append(try encoder.encode(frame)) }
    let locations = frames.map {
      SeekTable.Frame(storedSize: $0.stored, contentSize: $0.plain)
    }
    try append(SeekTable(frames: locations).encoded())
    return try object.finish()
  }
}

internal import Codecs
internal import Synchronization
public import SystemIO

/// The content writer of one thread. It cuts and hashes content, collects new blobs in frames, and
/// compresses the frames.
///
/// Not thread-safe, but it may be created on one thread and used on another. Each writer must
/// `flush` before the session can finish. It uses about 15 MB after storing much content, in
/// addition to the memory of a `FileWriter` while it stores a large file.
public final class ContentWriter {
  let session: WritingSession
  private var builder: FrameBuilder
  /// The frames of incompressible content. Mixed with text, it would cost as much time to compress
  /// and decompress as text, and degrade the compression.
  private var noise: FrameBuilder
  private var spread = ByteSpread()
  private var encoder: FrameEncoder
  /// The writer of the current file, kept for its buffers.
  private let file = FileWriter()
  /// The pieces of the current in-memory file, kept for their memory.
  var member = FileWriter.PendingMember()

  init(_ session: WritingSession) throws(StoreError) {
    self.session = session
    builder = try FrameBuilder(limit: FrameBuilder.dataLimit, buffers: session.buffers)
    noise = try FrameBuilder(limit: FrameBuilder.noiseLimit, buffers: session.buffers)
    encoder = try FrameEncoder()
  }

  /// Stores the bytes that `body` appends as the content of a file, and returns the content.
  ///
  /// `body` appends the bytes and holes in order. Its errors are rethrown; blobs stored until then
  /// do no harm. A file of at most 8 MiB without holes, all of whose pieces are new, becomes a
  /// member at `logicalPath` in a pack. Of any other file the new pieces are stored as parts.
  public func storeFile(
    logicalPath: ByteString, hints: FileHints = FileHints(), _ body: (FileWriter) throws -> Void
  ) throws -> Content {
    try prepare(logicalPath)
    try file.begin(self, path: logicalPath, hints: hints)
    defer { file.end() }
    do {
      try body(file)
    } catch {
      // A failure here has already ended the session; the next call reports it.
      try? file.abandon()
      throw error
    }
    return try file.finish()
  }

  /// Checks that a file can be stored now.
  func prepare(_ path: ByteString) throws(StoreError) {
    if let fault = PathRules.fault(inPath: path) {
      throw .invalid(path.description, "it is \(fault)")
    }
    try file.requireFree(path)
    try session.status.step { () throws(StoreError) in try session.lease.keepAlive() }
  }

  /// Stores bytes as one blob unless they are known, and returns its id.
  ///
  /// - Throws: `invalid` for no bytes or more than 8 MiB.
  public func storeBytes(_ bytes: [UInt8], kind: BlobKind) throws(StoreError) -> BlobID {
    guard !bytes.isEmpty, bytes.count <= FormatLimit.blob else {
      throw .invalid("a \(kind) blob", "it has \(bytes.count) bytes; a blob has 1 byte to 8 MiB")
    }
    guard kind == .data else {
      return BlobID(kind: kind, digest: try session.store(bytes, kind: kind))
    }
    let id = BlobID(kind: kind, digest: Blake2b.hash(bytes))
    guard session.known.claim(id, length: bytes.count) else { return id }
    try append(
      PackMembers.single(id, size: bytes.count), bytes: bytes.span,
      blobs: [PackFrame.Blob(id: id, offset: 0, length: bytes.count)])
    return id
  }

  /// Creates an extended attribute. A value of more than 512 bytes is stored as a blob.
  public func makeAttribute(name: ByteString, value: [UInt8]) throws(StoreError) -> Attribute {
    guard value.count > Attribute.inlineLimit else {
      return Attribute(name: name, value: .inline(value))
    }
    let blob = try storeBytes(value, kind: .data)
    return Attribute(name: name, value: .blob(blob.digest, length: UInt64(value.count)))
  }
}

// MARK: - Frames

extension ContentWriter {
  /// Adds a member with its blobs, which this thread has claimed.
  func append(
    _ member: TarMember, bytes: Span<UInt8>, blobs: [PackFrame.Blob]
  ) throws(StoreError) {
    try session.status.mustStep { () throws(StoreError) in
      guard
        var full = spread.isNoise(bytes)
          ? try noise.append(member, bytes: bytes, blobs: blobs)
          : try builder.append(member, bytes: bytes, blobs: blobs)
      else { return }
      if !session.queue.offer(full) { try compress(&full) }
    }
  }

  /// Writes all collected content, and frames that wait to be compressed, to packs. A thread calls
  /// this when it has no more content to store.
  public func flush() throws(StoreError) {
    try session.status.mustStep { () throws(StoreError) in
      try finishFrames()
      while var frame = session.queue.next() { try compress(&frame) }
    }
  }

  /// Compresses waiting frames of other threads' large files, until `isDone` returns true and none
  /// is waiting. A thread calls this while it has no file. `isDone` is called every few
  /// milliseconds. A failure ends the session; the next call reports it.
  public func helpUntilDone(_ isDone: () -> Bool) {
    session.queue.help(until: isDone) { frame in
      try? session.status.mustStep { () throws(StoreError) in try compress(&frame) }
    }
  }

  /// Closes the open frames. The rest of both kinds shares one frame if it fits.
  private func finishFrames() throws(StoreError) {
    guard var rest = noise.finish() else {
      if var last = builder.finish() { try compress(&last) }
      return
    }
    guard var last = builder.finish() else { return try compress(&rest) }
    if last.bytes.count + rest.bytes.count <= FrameBuilder.dataLimit {
      last.append(rest)
    } else {
      try compress(&rest)
    }
    try compress(&last)
  }

  /// Compresses a frame into a pack, and moves the bytes out of the frame, because a buffer with
  /// another reference cannot be reused.
  private func compress(_ plain: inout PackFrame.Plain) throws(StoreError) {
    try session.packers.append(try encoder.encode(plain))
    session.buffers.release(exchange(&plain.bytes, with: []))
  }

  /// The maximum size in bytes of a file that is stored as one piece, whatever its content.
  public static let smallFile = ContentCutter.wholeLimit
  /// The maximum size in bytes of a file that can become one member.
  public static let wholeFile = FileWriter.wholeLimit

  /// Stores bytes in memory as the content of a file. The result equals that of appending them. Up
  /// to `wholeFile` bytes are copied only once, into the frame.
  public func storeFile(
    logicalPath: ByteString, bytes: Span<UInt8>, hints: FileHints = FileHints()
  ) throws -> Content {
    guard bytes.count <= Self.wholeFile else {
      return try storeFile(logicalPath: logicalPath, hints: hints) { try $0.append(bytes) }
    }
    try prepare(logicalPath)
    let ranges = ContentCutter.pieces(of: bytes, isDatabase: hints.isDatabase, size: hints.size)
    return try store(
      zip(ranges, Blake2b.hash(ranges, of: bytes)), of: bytes, path: logicalPath, hints: hints)
  }

  /// Stores files of at most `smallFile` bytes each, in order. Hashing them together takes a
  /// fraction of the time.
  public func storeFiles(_ files: [SmallFile], of bytes: Span<UInt8>) throws -> [Content] {
    let digests = Blake2b.hash(files.map(\.range), of: bytes)
    var contents: [Content] = []
    contents.reserveCapacity(files.count)
    for (file, digest) in zip(files, digests) {
      precondition(file.range.count <= Self.smallFile, "the file would be cut in pieces")
      try prepare(file.logicalPath)
      contents.append(
        try store(
          CollectionOfOne((0..<file.range.count, digest)), of: bytes.extracting(file.range),
          path: file.logicalPath, hints: file.hints))
    }
    return contents
  }

  /// Stores the pieces of a file in memory, each with its digest.
  private func store(
    _ pieces: some Sequence<(Range<Int>, Digest)>, of bytes: Span<UInt8>, path: ByteString,
    hints: FileHints
  ) throws(StoreError) -> Content {
    guard !bytes.isEmpty else { return .empty }
    var content = Content.Builder()
    var isWhole = true
    member.removeAll()
    for (range, digest) in pieces {
      let id = BlobID(kind: .data, digest: digest)
      try content.append(.blob(digest, length: UInt64(range.count))) {
        level, pieces throws(StoreError) in
        try session.storeList(level: level, pieces: pieces)
      }
      let isNew = claim(id, length: range.count, besides: member)
      isWhole = isWhole && isNew
      member.append(id, range, at: UInt64(range.lowerBound), isKnown: !isNew)
    }
    try append(member, of: bytes, isWhole: isWhole, path: path, hints: hints)
    return try content.finish { level, pieces throws(StoreError) in
      try session.storeList(level: level, pieces: pieces)
    }
  }

  /// Whether a piece of the current file must be stored with it, because it is new or repeats one
  /// of the file's pending pieces.
  func claim(_ id: BlobID, length: Int, besides pending: FileWriter.PendingMember) -> Bool {
    guard pending.contains(id) else { return session.known.claim(id, length: length) }
    session.known.countKnown(length: length)
    return true
  }

  /// Adds the pending pieces of a file, as the whole file or as parts.
  func append(
    _ pending: FileWriter.PendingMember, of bytes: Span<UInt8>, isWhole: Bool, path: ByteString,
    hints: FileHints
  ) throws(StoreError) {
    if isWhole {
      return try pending.emitWhole(of: bytes) { bytes, blobs throws(StoreError) in
        try append(hints.member(path, size: bytes.count), bytes: bytes, blobs: blobs)
      }
    }
    try pending.emitParts(of: bytes, limit: FileWriter.partLimit) {
      offset, bytes, blobs throws(StoreError) in
      let part = PackMembers.part(of: path, at: offset)
      try append(hints.member(part, size: bytes.count), bytes: bytes, blobs: blobs)
    }
  }

  /// A small file in memory, among others.
  public struct SmallFile: Sendable {
    public let logicalPath: ByteString
    /// The range of the file in the shared bytes, at most `ContentWriter.smallFile` bytes long.
    public let range: Range<Int>
    public let hints: FileHints

    /// Creates a description of a file.
    public init(logicalPath: ByteString, range: Range<Int>, hints: FileHints = FileHints()) {
      (self.logicalPath, self.range, self.hints) = (logicalPath, range, hints)
    }
  }

  /// Full frames that wait for a thread without a file of its own, so that all threads compress one
  /// large file.
  ///
  /// The queue is bounded: it holds one frame of 4 MiB for each worker. A thread that finds the
  /// queue full, or no helpers, compresses the frame itself, so adding a frame never blocks.
  final class FrameQueue: Sendable {
    private let queue: BoundedQueue<PackFrame.Plain>
    private let helpers = Atomic<Int>(0)

    init(workers: Int) { queue = BoundedQueue(capacity: workers) }

    /// The time in milliseconds that a helper waits before it checks whether to continue.
    private static let patience = 2

    /// Adds a frame for the helpers. Returns false if there are none or if the queue is full.
    func offer(_ frame: PackFrame.Plain) -> Bool {
      helpers.load(ordering: .relaxed) > 0 && queue.offer(frame)
    }

    /// Returns the next waiting frame, or nil if there is none.
    func next() -> PackFrame.Plain? { queue.dequeue(waitingAtMost: 0) }

    /// Passes frames to `use` as they arrive, until `isDone` returns true and none waits.
    func help(until isDone: () -> Bool, _ use: (inout PackFrame.Plain) -> Void) {
      helpers.add(1, ordering: .relaxed)
      defer { helpers.subtract(1, ordering: .relaxed) }
      while true {
        let isLast = isDone()
        if var frame = queue.dequeue(waitingAtMost: isLast ? 0 : Self.patience) {
          use(&frame)
        } else if isLast {
          return
        }
      }
    }
  }
}

internal import Codecs
public import SystemIO

/// One thread's way of storing contents: it cuts and hashes them, gathers what is new in frames, and
/// compresses these.
///
/// Not for two threads at once, but it may be made on one and used on another. Each writer must
/// `flush` before the session can finish. Holds about 15 MB once it has stored much, and what a
/// `FileWriter` holds while it stores a large file.
public final class ContentWriter {
  let session: WritingSession
  private var builder: FrameBuilder
  /// Where what does not compress is gathered. Among text it would cost the compressor and the
  /// decoder as much time as text does, and spoil their statistics.
  private var noise: FrameBuilder
  private var spread = ByteSpread()
  private var encoder: FrameEncoder
  /// The writer of the file in hand, kept for its buffers.
  private let file = FileWriter()
  /// The pieces of the file in hand that is in memory, kept for its memory.
  var member = PendingMember()

  init(_ session: WritingSession) throws(StoreError) {
    self.session = session
    builder = try FrameBuilder(limit: FrameBuilder.dataLimit, buffers: session.buffers)
    noise = try FrameBuilder(limit: FrameBuilder.noiseLimit, buffers: session.buffers)
    encoder = try FrameEncoder()
  }

  /// Stores what `body` gives as the content of a file, and tells how to find it again.
  ///
  /// `body` appends the bytes and holes in order. What it throws is thrown on; what was stored of
  /// the file till then is of no harm. A file of at most 8 MiB, without holes, all of whose pieces
  /// are new, becomes a member at `logicalPath` in a pack; of all others the new pieces become parts.
  public func storeFile(
    logicalPath: ByteString, hints: FileHints = FileHints(), _ body: (FileWriter) throws -> Void
  ) throws -> Content {
    try prepare(logicalPath)
    try file.begin(self, path: logicalPath, hints: hints)
    defer { file.end() }
    do {
      try body(file)
    } catch {
      // What fails here has ended the session, which the next call tells of.
      try? file.giveUp()
      throw error
    }
    return try file.finish()
  }

  /// Makes sure that a file can be stored now.
  func prepare(_ path: ByteString) throws(StoreError) {
    if let fault = PathRules.fault(inPath: path) {
      throw .invalid(path.description, "it is \(fault)")
    }
    try file.requireFree(path)
    try session.status.step { () throws(StoreError) in try session.lease.keepAlive() }
  }

  /// Stores bytes as one blob, if they are not known, and gives its name.
  ///
  /// - Throws: `invalid` for no bytes or more than 8 MiB.
  public func storeBytes(_ bytes: [UInt8], kind: BlobKind) throws(StoreError) -> BlobID {
    guard !bytes.isEmpty, bytes.count <= FormatLimit.blob else {
      throw .invalid("a \(kind) blob", "it has \(bytes.count) bytes; 1 byte to 8 MiB can be stored")
    }
    guard kind == .data else {
      return BlobID(kind: kind, digest: try session.store(bytes, kind: kind))
    }
    let id = BlobID(kind: kind, digest: Blake2b.hash(bytes))
    guard session.known.claim(id, length: bytes.count) else { return id }
    let path = Self.values.appending(ByteString(id.digest.hex))
    try append(
      TarMember(path: Array(path.bytes), size: bytes.count), bytes: bytes.span,
      blobs: [PackFrame.Blob(id: id, offset: 0, length: bytes.count)])
    return id
  }

  /// Makes an extended attribute; a value of more than 512 bytes is stored as a blob.
  public func makeAttribute(name: ByteString, value: [UInt8]) throws(StoreError) -> Attribute {
    guard value.count > Attribute.inlineLimit else {
      return Attribute(name: name, value: .inline(value))
    }
    let blob = try storeBytes(value, kind: .data)
    return Attribute(name: name, value: .blob(blob.digest, length: UInt64(value.count)))
  }

  private static let values: ByteString = ".sandboxctl/values"
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

  /// Puts all that is gathered into packs, and what waits for a thread to compress it. To be called
  /// when the thread has no more to store.
  public func flush() throws(StoreError) {
    try session.status.mustStep { () throws(StoreError) in
      try finishFrames()
      while var frame = session.queue.next() { try compress(&frame) }
    }
  }

  /// Compresses frames of other threads' large files as they come, until `isDone` and none waits.
  /// To be called while this thread has no file; `isDone` is asked each few milliseconds. A failure
  /// ends the session, and the next call says so.
  public func helpUntilDone(_ isDone: () -> Bool) {
    session.queue.help(until: isDone) { frame in
      try? session.status.mustStep { () throws(StoreError) in try compress(&frame) }
    }
  }

  /// Closes the frames in hand; what is left of both sorts shares one if it can.
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

  /// Puts a frame into a pack, and takes its bytes out of it: a buffer that somebody else still
  /// holds cannot be used again.
  private func compress(_ plain: inout PlainFrame) throws(StoreError) {
    try session.lanes.append(try encoder.encode(plain))
    session.buffers.give(exchange(&plain.bytes, with: []))
  }
}

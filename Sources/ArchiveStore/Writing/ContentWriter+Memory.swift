internal import Codecs
public import SystemIO

extension ContentWriter {
  /// Files of up to so many bytes are one piece, whatever is in them.
  static let smallFile = ContentCutter.wholeLimit
  /// Files of up to so many bytes can become one member.
  public static let wholeFile = FileWriter.wholeLimit

  /// Stores bytes in memory as the content of a file: what comes of it is the same as when they are
  /// appended, and for up to `wholeFile` bytes it costs no copy of them but that into the frame.
  public func storeFile(
    logicalPath: ByteString, bytes: Span<UInt8>, hints: FileHints = FileHints()
  ) throws -> Content {
    guard bytes.count <= Self.wholeFile else {
      return try storeFile(logicalPath: logicalPath, hints: hints) { try $0.append(bytes) }
    }
    try prepare(logicalPath)
    return bytes.count <= Self.smallFile
      ? try storeSmall(logicalPath, bytes, hints) : try storeWhole(logicalPath, bytes, hints)
  }

  /// Stores bytes in memory as the content of a file.
  public func storeFile(
    logicalPath: ByteString, bytes: [UInt8], hints: FileHints = FileHints()
  ) throws -> Content {
    try storeFile(logicalPath: logicalPath, bytes: bytes.span, hints: hints)
  }

  private func storeSmall(
    _ path: ByteString, _ bytes: Span<UInt8>, _ hints: FileHints
  ) throws(StoreError) -> Content {
    guard !bytes.isEmpty else { return .empty }
    let id = BlobID(kind: .data, digest: Blake2b.hash(bytes))
    if session.known.claim(id, length: bytes.count) {
      try append(
        hints.member(path, size: bytes.count), bytes: bytes,
        blobs: [PackFrame.Blob(id: id, offset: 0, length: bytes.count)])
    }
    let size = UInt64(bytes.count)
    return Content(size: size, level: 0, pieces: [.blob(id.digest, length: size)])
  }

  private func storeWhole(
    _ path: ByteString, _ bytes: Span<UInt8>, _ hints: FileHints
  ) throws(StoreError) -> Content {
    var content = ContentBuilder()
    let storeList: ContentBuilder.StoreList = { level, pieces throws(StoreError) in
      try self.session.storeList(level: level, pieces: pieces)
    }
    var isWhole = true
    member.removeAll()
    let places = ContentCutter.pieces(of: bytes, isDatabase: hints.isDatabase, size: hints.size)
    for (place, digest) in zip(places, Blake2b.hash(places, of: bytes)) {
      let id = BlobID(kind: .data, digest: digest)
      try content.append(.blob(digest, length: UInt64(place.count)), store: storeList)
      let isNew = claim(id, length: place.count)
      isWhole = isWhole && isNew
      member.append(id, place, at: UInt64(place.lowerBound), isKnown: !isNew)
    }
    try append(member, of: bytes, isWhole: isWhole, path: path, hints: hints)
    return try content.finish(store: storeList)
  }

  /// Whether a piece of the file in hand is to be stored with it: it is new, or was further to the
  /// front.
  private func claim(_ id: BlobID, length: Int) -> Bool {
    guard member.contains(id) else { return session.known.claim(id, length: length) }
    session.known.countKnown(length: length)
    return true
  }

  /// Adds what is pending of a file: as the whole file, or as parts of it.
  func append(
    _ pending: PendingMember, of bytes: Span<UInt8>, isWhole: Bool, path: ByteString,
    hints: FileHints
  ) throws(StoreError) {
    if isWhole {
      return try pending.giveWhole(of: bytes) { bytes, blobs throws(StoreError) in
        try append(hints.member(path, size: bytes.count), bytes: bytes, blobs: blobs)
      }
    }
    try pending.giveParts(of: bytes, limit: FileWriter.partLimit) {
      offset, bytes, blobs throws(StoreError) in
      let digits = String(offset, radix: 16)
      let name = String(repeating: "0", count: 16 - digits.utf8.count) + digits
      let part = Self.parts.appending(path).appending(ByteString(name))
      try append(hints.member(part, size: bytes.count), bytes: bytes, blobs: blobs)
    }
  }

  private static let parts: ByteString = ".sandboxctl/parts"
}

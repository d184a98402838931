internal import Codecs
package import SystemIO

extension ContentWriter {
  /// The maximum size in bytes of a file that is stored as one piece, whatever its content.
  package static let smallFile = ContentCutter.wholeLimit
  /// The maximum size in bytes of a file that can become one member.
  package static let wholeFile = FileWriter.wholeLimit

  /// Stores bytes in memory as the content of a file. The result equals that of appending them. Up
  /// to `wholeFile` bytes are copied only once, into the frame.
  package func storeFile(
    logicalPath: ByteString, bytes: Span<UInt8>, hints: FileHints = FileHints()
  ) throws -> Content {
    guard bytes.count <= Self.wholeFile else {
      return try storeFile(logicalPath: logicalPath, hints: hints) { try $0.append(bytes) }
    }
    try prepare(logicalPath)
    return bytes.count <= Self.smallFile
      ? try storeSmall(logicalPath, bytes: bytes, digest: Blake2b.hash(bytes), hints: hints)
      : try storeWhole(logicalPath, bytes: bytes, hints: hints)
  }

  /// Stores files of at most `smallFile` bytes each, in order. Hashing them together takes a
  /// fraction of the time.
  package func storeFiles(_ files: [SmallFile], of bytes: Span<UInt8>) throws -> [Content] {
    let digests = Blake2b.hash(files.map(\.place), of: bytes)
    var contents: [Content] = []
    contents.reserveCapacity(files.count)
    for (file, digest) in zip(files, digests) {
      precondition(file.place.count <= Self.smallFile, "the file would be cut in pieces")
      try prepare(file.logicalPath)
      contents.append(
        try storeSmall(
          file.logicalPath, bytes: bytes.extracting(file.place), digest: digest,
          hints: file.hints))
    }
    return contents
  }

  /// Stores bytes in memory as the content of a file.
  package func storeFile(
    logicalPath: ByteString, bytes: [UInt8], hints: FileHints = FileHints()
  ) throws -> Content {
    try storeFile(logicalPath: logicalPath, bytes: bytes.span, hints: hints)
  }

  private func storeSmall(
    _ path: ByteString, bytes: Span<UInt8>, digest: Digest, hints: FileHints
  ) throws(StoreError) -> Content {
    guard !bytes.isEmpty else { return .empty }
    let id = BlobID(kind: .data, digest: digest)
    if session.known.claim(id, length: bytes.count) {
      try append(
        hints.member(path, size: bytes.count), bytes: bytes,
        blobs: [PackFrame.Blob(id: id, offset: 0, length: bytes.count)])
    }
    let size = UInt64(bytes.count)
    return Content(size: size, level: 0, pieces: [.blob(id.digest, length: size)])
  }

  private func storeWhole(
    _ path: ByteString, bytes: Span<UInt8>, hints: FileHints
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

  /// Whether a piece of the current file must be stored with it, because it is new or repeats an
  /// earlier new piece of the file.
  private func claim(_ id: BlobID, length: Int) -> Bool {
    guard member.contains(id) else { return session.known.claim(id, length: length) }
    session.known.countKnown(length: length)
    return true
  }

  /// Adds the pending pieces of a file, as the whole file or as parts.
  func append(
    _ pending: PendingMember, of bytes: Span<UInt8>, isWhole: Bool, path: ByteString,
    hints: FileHints
  ) throws(StoreError) {
    if isWhole {
      return try pending.emitWhole(of: bytes) { bytes, blobs throws(StoreError) in
        try append(hints.member(path, size: bytes.count), bytes: bytes, blobs: blobs)
      }
    }
    try pending.emitParts(of: bytes, limit: FileWriter.partLimit) {
      offset, bytes, blobs throws(StoreError) in
      let digits = String(offset, radix: 16)
      let name = String(repeating: "0", count: 16 - digits.utf8.count) + digits
      let part = Self.parts.appending(path).appending(ByteString(name))
      try append(hints.member(part, size: bytes.count), bytes: bytes, blobs: blobs)
    }
  }

  private static let parts: ByteString = ".sandboxctl/parts"
}

/// A small file in memory, among others.
package struct SmallFile: Sendable {
  package let logicalPath: ByteString
  /// The range of the file in the shared bytes, at most `ContentWriter.smallFile` bytes long.
  package let place: Range<Int>
  package let hints: FileHints

  /// Creates a description of a file.
  package init(logicalPath: ByteString, place: Range<Int>, hints: FileHints = FileHints()) {
    (self.logicalPath, self.place, self.hints) = (logicalPath, place, hints)
  }
}

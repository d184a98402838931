internal import Codecs
public import SystemIO

/// What is known of a file before it is read.
public struct FileHints: Hashable, Sendable {
  /// Bytes, as the file system says; a guide for cutting, not a promise.
  public var size: UInt64?
  /// Whether it is to be cut as a SQLite database though it may not begin as one.
  public var isDatabase: Bool
  /// What the pack's own members bear, for those who extract them by hand.
  public var permissions: UInt16
  public var modified: Timestamp

  /// Makes hints.
  public init(
    size: UInt64? = nil, isDatabase: Bool = false, permissions: UInt16 = 0o644,
    modified: Timestamp = Timestamp(seconds: 0)
  ) {
    self.size = size
    self.isDatabase = isDatabase
    self.permissions = permissions
    self.modified = modified
  }
}

extension WritingSession {
  /// Stores what `read` gives as the content of a file, and tells how to find it again.
  ///
  /// `read` appends the bytes and holes in order. What it throws is thrown on; what was stored of
  /// the file till then is of no harm. A file of at most 8 MiB, without holes, all of whose pieces
  /// are new, becomes a member at `logicalPath` in a pack; of all others the new pieces become parts.
  public func storeFile(
    logicalPath: ByteString, hints: FileHints = FileHints(),
    reading read: (FileWriter) throws -> Void
  ) throws -> Content {
    if let fault = PathRules.fault(inPath: logicalPath) {
      throw StoreError.invalid(logicalPath.description, "it is \(fault)")
    }
    try work { () throws(StoreError) in try lease.keepAlive() }
    try files.begin(self, path: logicalPath, hints: hints)
    defer { files.end() }
    try read(files)
    return try work { () throws(StoreError) in try files.finish() }
  }

  /// Stores bytes in memory as the content of a file.
  public func storeFile(
    logicalPath: ByteString, bytes: [UInt8], hints: FileHints = FileHints()
  ) throws -> Content {
    try storeFile(logicalPath: logicalPath, hints: hints) { try $0.append(bytes) }
  }

  /// Stores a list of a large file's pieces.
  func storeList(level: UInt8, pieces: [Piece]) throws(StoreError) -> Digest {
    try store(ContentCoding.encodeList(level: level, pieces: pieces), kind: .list).digest
  }
}

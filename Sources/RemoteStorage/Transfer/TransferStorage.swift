package import ArchiveStore
internal import Codecs
package import SystemIO

/// A storage that counts the requests to another one and the bytes of objects, and limits the bytes
/// per second in each direction. Only calls that make no request are passed on unchanged.
package final class TransferStorage: ForwardingStorage {
  package let base: any Storage
  fileprivate let counts: TransferCounts
  fileprivate let upload: RateLimit?
  private let download: RateLimit?
  /// Whether the other storage itself counts and limits what it sends.
  fileprivate let isSpooling: Bool
  private let isStopping: @Sendable () -> Bool
  /// A place for each transfer in progress; nil for any number.
  private let places: BoundedQueue<Void>?

  /// Wraps a storage.
  ///
  /// - Parameters:
  ///   - counts: receives the requests and bytes.
  ///   - upload: the limit of the bytes that are sent; nil for none.
  ///   - download: the limit of the bytes that are received; nil for none.
  ///   - connections: the number of transfers of objects at the same time; nil for any number.
  ///   - isSpooling: whether the other storage keeps written objects on this host until they are
  ///     complete, and counts and limits the bytes when it sends them.
  ///   - isStopping: whether the user asked to stop: what is read in pieces then ends early.
  package init(
    _ base: any Storage, counts: TransferCounts, upload: RateLimit? = nil,
    download: RateLimit? = nil, connections: Int? = nil, isSpooling: Bool = false,
    isStopping: @escaping @Sendable () -> Bool = { false }
  ) {
    (self.isSpooling, self.isStopping) = (isSpooling, isStopping)
    self.base = base
    self.counts = counts
    places = connections.map { BoundedQueue(capacity: $0) }
    (self.upload, self.download) = (upload, download)
  }

  /// The warnings of the storage about what a crash can cost, each in one sentence.
  package var warnings: [String] { (base as? any WarningStorage)?.warnings ?? [] }

  package func load(_ path: ObjectPath, limit: Int) throws(StoreError) -> [UInt8] {
    counts.didRequest()
    let bytes = try transferring { () throws(StoreError) in try base.load(path, limit: limit) }
    received(bytes.count)
    return bytes
  }

  /// Reads a range, with a limit in pieces, so that the rate is even.
  package func load(
    _ path: ObjectPath, offset: UInt64, count: Int, into buffer: inout [UInt8]
  ) throws(StoreError) {
    guard let download, count > download.piece else {
      return try load(once: path, offset: offset, count: count, into: &buffer)
    }
    buffer.removeAll(keepingCapacity: true)
    var piece: [UInt8] = []
    while buffer.count < count {
      if !buffer.isEmpty, isStopping() {
        throw .interrupted("finish reading", "\(path)", hint: "run it again")
      }
      let next = min(download.piece, count - buffer.count)
      try load(once: path, offset: offset + UInt64(buffer.count), count: next, into: &piece)
      buffer += piece
    }
  }

  private func load(
    once path: ObjectPath, offset: UInt64, count: Int, into buffer: inout [UInt8]
  ) throws(StoreError) {
    counts.didRequest()
    try transferring { () throws(StoreError) in
      try base.load(path, offset: offset, count: count, into: &buffer)
    }
    received(count)
  }

  /// Makes a call that transfers an object, once fewer than the permitted number are in progress.
  fileprivate func transferring<Result>(
    _ body: () throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    places?.enqueue(())
    defer { _ = places?.dequeue() }
    return try body()
  }

  package func list(_ directory: ObjectPath) throws(StoreError) -> [ByteString] {
    counts.didRequest()
    return try base.list(directory)
  }

  /// Counts one request, whatever number of pages there are.
  package func forEachObject(
    below directory: ObjectPath, _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError) {
    counts.didRequest()
    try base.forEachObject(below: directory, body)
  }

  package func status(_ path: ObjectPath) throws(StoreError) -> ObjectStatus? {
    counts.didRequest()
    return try base.status(path)
  }

  package func startObject(in directory: ObjectPath) throws(StoreError) -> any ObjectWriter {
    TransferWriter(try base.startObject(in: directory), of: self)
  }

  package func makeDirectories(
    _ names: [ByteString], in directory: ObjectPath
  ) throws(StoreError) {
    counts.didRequest()
    try base.makeDirectories(names, in: directory)
  }

  package func touch(_ path: ObjectPath) throws(StoreError) {
    counts.didRequest()
    try base.touch(path)
  }

  /// Counts one request for each object in a store of objects, and one for all on a server with
  /// files, which receives them at once.
  package func touch(_ paths: [ObjectPath]) throws(StoreError) {
    for _ in 0..<(canRename ? 1 : paths.count) { counts.didRequest() }
    try base.touch(paths)
  }

  package func listAll(_ directories: [ObjectPath]) throws(StoreError) -> [DirectoryListing?] {
    for _ in 0..<(canRename ? 1 : directories.count) { counts.didRequest() }
    return try base.listAll(directories)
  }

  /// Counts one request, whatever number of pages and directories there are.
  package func forEachObject(
    belowAny directories: [ObjectPath],
    _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError) {
    counts.didRequest()
    try base.forEachObject(belowAny: directories, body)
  }

  package func create(_ bytes: [UInt8], as path: ObjectPath) throws(StoreError) -> Bool {
    counts.didRequest()
    if !isSpooling { upload?.take(bytes.count) }
    let isNew = try base.create(bytes, as: path)
    if !isSpooling { counts.didSend(bytes: bytes.count) }
    return isNew
  }

  package func rename(_ path: ObjectPath, to target: ObjectPath) throws(StoreError) {
    counts.didRequest()
    try base.rename(path, to: target)
  }

  package func moveAside(_ moves: [ObjectMove]) throws(StoreError) -> Bool {
    counts.didRequest()
    return try base.moveAside(moves)
  }

  package func remove(_ path: ObjectPath) throws(StoreError) {
    counts.didRequest()
    try base.remove(path)
  }

  package func remove(_ paths: [ObjectPath]) throws(StoreError) {
    counts.didRequest()
    try base.remove(paths)
  }

  package func space() throws(StoreError) -> VolumeSpace? {
    let space = try base.space()
    // A store of objects has none, and is not asked.
    if space != nil { counts.didRequest() }
    return space
  }

  private func received(_ bytes: Int) {
    counts.didReceive(bytes: bytes)
    download?.take(bytes)
  }
}

/// A storage with warnings about what a crash of its host can cost.
package protocol WarningStorage: Storage {
  /// The warnings, each in one sentence.
  var warnings: [String] { get }
}

/// An object that is being sent. It counts as one request, for its bytes and its name together.
private final class TransferWriter: ObjectWriter {
  private let base: any ObjectWriter
  private let storage: TransferStorage

  init(_ base: any ObjectWriter, of storage: TransferStorage) {
    (self.base, self.storage) = (base, storage)
  }

  func append(_ bytes: [UInt8]) throws(StoreError) {
    if storage.isSpooling { return try base.append(bytes) }
    storage.upload?.take(bytes.count)
    try base.append(bytes)
    storage.counts.didSend(bytes: bytes.count)
  }

  func commit(as path: ObjectPath, digest: Digest, isReadSoon: Bool) throws(StoreError) {
    storage.counts.didRequest()
    try storage.transferring { () throws(StoreError) in
      try base.commit(as: path, digest: digest, isReadSoon: isReadSoon)
    }
  }

  func discard() { base.discard() }
}

public import Codecs
public import SystemIO

/// Where a repository's objects lie: small, so that wrappers can retry, throttle or fail on purpose.
///
/// Objects are immutable: they are written as a temporary in a directory of the writer's (its lease)
/// and appear under their own name whole and durable, or not at all. Names are listed in byte
/// order. Errors say `missing` for what is not there, `system` for what the system refused.
public protocol Storage: Sendable {
  /// The place, for messages.
  var place: String { get }

  /// Whether `rename` works, which leases and pruning rely on.
  var canRename: Bool { get }

  /// Gives a whole object of at most `limit` bytes; a larger one is `damaged`.
  func load(_ path: ObjectPath, limit: Int) throws(StoreError) -> [UInt8]

  /// Gives `count` bytes from `offset` on; an object that ends before is `damaged`.
  func load(_ path: ObjectPath, offset: UInt64, count: Int) throws(StoreError) -> [UInt8]

  /// Puts `count` bytes from `offset` on in the place of what a buffer has, of which only the room is
  /// used again; an object that ends before is `damaged`. When it fails, what the buffer has is
  /// nothing to go by.
  func load(
    _ path: ObjectPath, offset: UInt64, count: Int, into buffer: inout [UInt8]
  ) throws(StoreError)

  /// Gives the names in a directory, sorted by bytes.
  func list(_ directory: ObjectPath) throws(StoreError) -> [ByteString]

  /// Calls `body` with the path, size and time of each object below a directory, at any depth, in any
  /// order. Directories, and what is neither a file nor a directory, are not told of, nor is what is removed
  /// meanwhile. A store that lists in pages asks for one after the other; the sizes cost it no
  /// further request.
  ///
  /// Errors: `missing` where the directory itself is not there; those of `body`.
  func forEachObject(
    below directory: ObjectPath, _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError)

  /// Tells what an object or a directory is, nothing when there is none.
  func status(_ path: ObjectPath) throws(StoreError) -> ObjectStatus?

  /// Begins an object as a temporary in `folder`.
  func startObject(in directory: ObjectPath) throws(StoreError) -> any ObjectWriter

  /// Makes directories in a directory, durably; one that is there already is `notEmpty`.
  func makeDirectories(_ names: [ByteString], in directory: ObjectPath) throws(StoreError)

  /// Makes an empty object if it is missing and sets its time to the storage's own present. The
  /// directory must exist.
  func touch(_ path: ObjectPath) throws(StoreError)

  /// Moves an object or a directory, durably; an object at `target` is replaced.
  func rename(_ path: ObjectPath, to target: ObjectPath) throws(StoreError)

  /// Removes an object or an empty directory.
  func remove(_ path: ObjectPath) throws(StoreError)

  /// The space of the volume that the objects lie on; nothing where that cannot be told.
  func space() throws(StoreError) -> VolumeSpace?
}

extension Storage {
  /// Puts a range of an object into a buffer, where the storage has no way that spares memory.
  public func load(
    _ path: ObjectPath, offset: UInt64, count: Int, into buffer: inout [UInt8]
  ) throws(StoreError) {
    buffer = try load(path, offset: offset, count: count)
  }
}

/// What a storage knows of an object without reading it.
public struct ObjectStatus: Hashable, Sendable {
  /// Whether it is a directory.
  public let isDirectory: Bool
  /// Bytes; 0 for a directory.
  public let size: UInt64
  /// When it was last written, by the storage's clock.
  public let modified: Timestamp

  /// Makes a status.
  public init(isDirectory: Bool, size: UInt64, modified: Timestamp) {
    self.isDirectory = isDirectory
    self.size = size
    self.modified = modified
  }
}

/// An object that is being written and that nobody can see yet.
///
/// It ends with `commit` or `discard`; one that goes out of use without either is discarded.
public protocol ObjectWriter: AnyObject {
  /// Writes bytes behind those written before.
  func append(_ bytes: [UInt8]) throws(StoreError)

  /// Makes the object durable under its name. `digest` is the BLAKE2b-256 of all its bytes: by it
  /// the object is proved when it must be made again because the disk refused it once. What is not
  /// read soon need not stay in the system's memory.
  func commit(as path: ObjectPath, digest: Digest, isReadSoon: Bool) throws(StoreError)

  /// Removes what was written.
  func discard()
}

extension Storage {
  /// Most stores cannot tell.
  public func space() throws(StoreError) -> VolumeSpace? { nil }

  /// Saves a whole object, durably, by way of a temporary in `folder`.
  public func save(
    _ bytes: [UInt8], as path: ObjectPath, by directory: ObjectPath
  ) throws(StoreError) {
    let writer = try startObject(in: directory)
    do {
      try writer.append(bytes)
      try writer.commit(as: path, digest: Blake2b.hash(bytes), isReadSoon: true)
    } catch {
      writer.discard()
      throw error
    }
  }
}

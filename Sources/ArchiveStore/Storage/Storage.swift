public import Codecs
public import SystemIO

/// A storage for the objects of a repository. The protocol is small, so that wrappers can retry,
/// throttle or inject failures.
///
/// Objects are immutable. They are written as a temporary in a directory of the writer (its lease)
/// and appear under their name complete and durable, or not at all. Names are listed in byte order.
/// Errors are `missing` for objects that do not exist and `system` for failed system calls.
///
/// A storage without rename is an object store and has no directories: `makeDirectories` succeeds
/// without effect, `list` returns the next component of all paths below a prefix and is empty if
/// there are none, and `status` of a prefix with objects is that of a directory. An unfinished
/// object is not in the store but in a local file of mode 0600, which `commit` puts as a whole.
public protocol Storage: Sendable {
  /// The location, for messages.
  var location: String { get }

  /// Whether `rename` works, and so whether there are directories.
  var canRename: Bool { get }

  /// Whether `create` works: whether an object can be created only if it is missing, atomically.
  var canCreateExclusively: Bool { get }

  /// The number of requests to make at the same time: 1 if answers come at once.
  var concurrency: Int { get }

  /// Returns a complete object of at most `limit` bytes. A larger one is `damaged`.
  func load(_ path: ObjectPath, limit: Int) throws(StoreError) -> [UInt8]

  /// Replaces the content of a buffer by `count` bytes from `offset`, reusing its capacity. An
  /// object that ends earlier is `damaged`. After an error the content of the buffer is undefined.
  func load(
    _ path: ObjectPath, offset: UInt64, count: Int, into buffer: inout [UInt8]
  ) throws(StoreError)

  /// Returns the names in a directory, sorted by bytes.
  func list(_ directory: ObjectPath) throws(StoreError) -> [ByteString]

  /// Calls `body` with the path, size and time of each object below a directory, at any depth, in
  /// any order. Directories, special files and objects removed in the meantime are not reported. A
  /// paged store fetches one page at a time, and needs no further requests for the sizes.
  ///
  /// - Throws: `missing` if the directory does not exist, and any error of `body`.
  func forEachObject(
    below directory: ObjectPath, _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError)

  /// Returns the status of an object or directory, or nil if there is none.
  func status(_ path: ObjectPath) throws(StoreError) -> ObjectStatus?

  /// Starts an object as a temporary in `directory`.
  func startObject(in directory: ObjectPath) throws(StoreError) -> any ObjectWriter

  /// Creates directories in a directory, durably. If one already exists, the error is `notEmpty`.
  func makeDirectories(_ names: [ByteString], in directory: ObjectPath) throws(StoreError)

  /// Creates an empty object if it is missing, and sets its time to the storage's current time. The
  /// directory must exist.
  func touch(_ path: ObjectPath) throws(StoreError)

  /// Creates an object if none of its name exists, durably and in one step. Returns false if one
  /// exists.
  ///
  /// - Throws: `unsupported` unless `canCreateExclusively`.
  func create(_ bytes: [UInt8], as path: ObjectPath) throws(StoreError) -> Bool

  /// Moves an object or a directory, durably. An object at `target` is replaced.
  ///
  /// - Throws: `unsupported` unless `canRename`.
  func rename(_ path: ObjectPath, to target: ObjectPath) throws(StoreError)

  /// Moves objects that are to be removed, with as little waiting as possible. Missing ones are
  /// ignored. Unlike a rename it is not durable: after a power failure they may be back.
  ///
  /// - Returns: whether none was missing.
  /// - Throws: `unsupported` unless `canRename`.
  func moveAside(_ moves: [ObjectMove]) throws(StoreError) -> Bool

  /// Removes an object or an empty directory.
  func remove(_ path: ObjectPath) throws(StoreError)

  /// Removes objects with as few requests as possible. Missing ones are ignored. If it fails, some
  /// of them may be removed.
  func remove(_ paths: [ObjectPath]) throws(StoreError)

  /// Returns the space of the volume that contains the objects, or nil if it is unknown.
  func space() throws(StoreError) -> VolumeSpace?

  /// Returns the identity of the directory of this host that contains the objects, or nil if they
  /// are on another host. No backup includes it, and no restore replaces it.
  func directoryIdentity() throws(StoreError) -> FileIdentity?

  /// The earlier contents of objects; nil if the storage has none.
  var versions: (any ObjectVersions)? { get }

  /// Touches several objects, with as little waiting as possible.
  func touch(_ paths: [ObjectPath]) throws(StoreError)

  /// Lists several directories, with as little waiting as possible, in any order. A missing one is
  /// nil.
  func listAll(_ directories: [ObjectPath]) throws(StoreError) -> [DirectoryListing?]

  /// Calls `body` for each object below several directories, as the same call for one does. Missing
  /// ones are ignored.
  func forEachObject(
    belowAny directories: [ObjectPath],
    _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError)

  /// Announces the ranges of objects that are read next, roughly in this order and once each, so
  /// that a storage on another host can fetch them ahead. Replaces the previous announcement; an
  /// empty one ends it.
  func expect(_ ranges: [ObjectRange])

  /// Forgets what was read ahead of an object, so that its bytes are requested again.
  func forgetReads(of path: ObjectPath)
}

/// The names in a directory.
public struct DirectoryListing: Sendable {
  /// The names, sorted by bytes.
  public var names: [ByteString]
  /// The status of each object and directory; nil if the storage would have to ask for them.
  public var statuses: [ByteString: ObjectStatus]?

  /// Creates a listing.
  public init(names: [ByteString], statuses: [ByteString: ObjectStatus]? = nil) {
    (self.names, self.statuses) = (names, statuses)
  }
}

/// The move of an object to another path.
public struct ObjectMove: Hashable, Sendable {
  public let path: ObjectPath
  public let target: ObjectPath

  /// Creates a move.
  public init(_ path: ObjectPath, to target: ObjectPath) {
    (self.path, self.target) = (path, target)
  }
}

/// A range of the bytes of an object.
public struct ObjectRange: Hashable, Sendable {
  public let path: ObjectPath
  public let range: Range<UInt64>

  /// Creates a range.
  public init(path: ObjectPath, range: Range<UInt64>) { (self.path, self.range) = (path, range) }
}

extension Storage {
  /// Returns `count` bytes from `offset`. An object that ends earlier is `damaged`.
  public func load(
    _ path: ObjectPath, offset: UInt64, count: Int
  ) throws(StoreError) -> [UInt8] {
    var bytes: [UInt8] = []
    try load(path, offset: offset, count: count, into: &bytes)
    return bytes
  }
}

/// The status of an object or directory.
public struct ObjectStatus: Hashable, Sendable {
  /// Whether it is a directory.
  public let isDirectory: Bool
  /// The size in bytes, at most `sizeLimit`; 0 for a directory.
  public let size: UInt64
  /// The time of the last write, by the storage's clock.
  public let modified: Timestamp

  /// The largest size of an object, 1 TiB: far more than that of a pack. A faulty or hostile store
  /// may state a larger one. It counts as this one, so that no sum of sizes overflows.
  public static let sizeLimit: UInt64 = 1 << 40

  /// Creates a status.
  public init(isDirectory: Bool, size: UInt64, modified: Timestamp) {
    self.isDirectory = isDirectory
    self.size = min(size, Self.sizeLimit)
    self.modified = modified
  }
}

/// An object that is being written and not visible yet.
///
/// It ends with `commit` or `discard`. On deinitialization it is discarded.
public protocol ObjectWriter: AnyObject {
  /// Appends bytes.
  func append(_ bytes: [UInt8]) throws(StoreError)

  /// Makes the object durable under its name. `digest` is the BLAKE2b-256 of all its bytes, which
  /// verifies a copy made after a failed sync. Unless `isReadSoon`, it need not stay in the page
  /// cache.
  func commit(as path: ObjectPath, digest: Digest, isReadSoon: Bool) throws(StoreError)

  /// Removes the written bytes.
  func discard()
}

extension Storage {
  /// None, as a file system keeps no replaced files.
  public var versions: (any ObjectVersions)? { nil }

  /// One: a file system answers at once.
  public var concurrency: Int { 1 }

  /// Returns false, as a file system replaces objects.
  public var canCreateExclusively: Bool { false }

  /// Always fails.
  public func create(_ bytes: [UInt8], as path: ObjectPath) throws(StoreError) -> Bool {
    throw StoreError(
      .unsupported, "create", subject: "\(path)",
      reason: "the storage cannot create an object only if it is missing")
  }

  /// Touches one object after another.
  public func touch(_ paths: [ObjectPath]) throws(StoreError) {
    for path in paths { try touch(path) }
  }

  /// Lists one directory after another.
  public func listAll(_ directories: [ObjectPath]) throws(StoreError) -> [DirectoryListing?] {
    var found: [DirectoryListing?] = []
    for directory in directories {
      found.append(try listIfPresent(directory).map { DirectoryListing(names: $0) })
    }
    return found
  }

  /// Lists one directory after another.
  public func forEachObject(
    belowAny directories: [ObjectPath],
    _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError) {
    for directory in directories {
      var failure: StoreError?
      do throws(StoreError) {
        try forEachObject(below: directory) { path, status throws(StoreError) in
          do throws(StoreError) { try body(path, status) } catch {
            failure = error
            throw error
          }
        }
      } catch {
        if let failure { throw failure }
        guard error.isAbsence else { throw error }
      }
    }
  }

  /// Has no effect: reads of this host are not slow.
  public func expect(_ ranges: [ObjectRange]) {}

  /// Has no effect: nothing is read ahead.
  public func forgetReads(of path: ObjectPath) {}

  /// Renames one object after another.
  public func moveAside(_ moves: [ObjectMove]) throws(StoreError) -> Bool {
    var isWhole = true
    for move in moves {
      do {
        try rename(move.path, to: move.target)
      } catch {
        guard error.code == .missing else { throw error }
        isWhole = false
      }
    }
    return isWhole
  }

  /// Removes one object after another.
  public func remove(_ paths: [ObjectPath]) throws(StoreError) {
    for path in paths {
      do { try remove(path) } catch { guard error.code == .missing else { throw error } }
    }
  }

  /// Returns nil, as most stores cannot determine their space.
  public func space() throws(StoreError) -> VolumeSpace? { nil }

  /// Returns nil, as most stores are on other hosts.
  public func directoryIdentity() throws(StoreError) -> FileIdentity? { nil }

  /// Returns the directories of this host that no backup includes and no operation replaces: that
  /// of `directoryIdentity`, or none.
  public func protectedDirectories() throws(StoreError) -> Set<FileIdentity> {
    try directoryIdentity().map { [$0] } ?? []
  }

  /// Whether each request is answered by another host, so that few large requests are better than
  /// many small ones.
  var isOnAnotherHost: Bool {
    do { return try directoryIdentity() == nil } catch { return false }
  }

  /// Saves a complete object, durably, through a temporary in `directory`.
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

  /// Returns the names in a directory of the layout, or nil if the directory is missing. Throws if
  /// the name belongs to something else.
  func listIfPresent(_ directory: ObjectPath) throws(StoreError) -> [ByteString]? {
    do {
      return try list(directory)
    } catch {
      guard error.isAbsence else { throw error }
      return nil
    }
  }

  /// Creates the missing directories among `names`. Another program may create some at the same
  /// time; these are kept.
  func makeMissing(_ names: [ByteString], in directory: ObjectPath) throws(StoreError) {
    for _ in 0...names.count {
      let there = Set(try list(directory))
      let missing = names.filter { !there.contains($0) }
      if missing.isEmpty { return }
      do {
        return try makeDirectories(missing, in: directory)
      } catch {
        guard error.code == .notEmpty else { throw error }
      }
    }
  }
}

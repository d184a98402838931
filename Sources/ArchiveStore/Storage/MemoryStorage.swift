internal import Codecs
internal import Synchronization
public import SystemIO

/// A repository's objects in memory: for tests and for trying things out. Nothing outlives it.
public final class MemoryStorage: Storage {
  private struct Object {
    var bytes: [UInt8]?
    var modified: Timestamp
  }

  private let objects: Mutex<[ObjectPath: Object]>
  /// The name that messages bear.
  public let place: String

  /// Makes an empty storage.
  public init(name: String = "memory") {
    place = name
    objects = Mutex([.root: Object(bytes: nil, modified: Host.now())])
  }

  /// Memory renames.
  public var canRename: Bool { true }

  /// Gives a whole object.
  public func load(_ path: ObjectPath, limit: Int) throws(StoreError) -> [UInt8] {
    let bytes = try bytes(path)
    guard bytes.count <= limit else {
      throw .damaged(path.description, "it is larger than the \(limit) bytes it may have")
    }
    return bytes
  }

  /// Gives a range of an object.
  public func load(
    _ path: ObjectPath, offset: UInt64, count: Int
  ) throws(StoreError) -> [UInt8] {
    let bytes = try bytes(path)
    guard offset <= UInt64(bytes.count), count <= bytes.count - Int(offset) else {
      throw .damaged(path.description, "it ends before byte \(offset &+ UInt64(count))")
    }
    return Array(bytes[Int(offset)..<(Int(offset) + count)])
  }

  private func bytes(_ path: ObjectPath) throws(StoreError) -> [UInt8] {
    guard let bytes = objects.withLock({ $0[path]?.bytes }) else {
      throw .missing(path.description)
    }
    return bytes
  }

  /// Gives the names in a folder.
  public func list(_ folder: ObjectPath) throws(StoreError) -> [ByteString] {
    let names: [ByteString]? = objects.withLock { objects in
      guard let object = objects[folder], object.bytes == nil else { return nil }
      return objects.keys.filter { $0 != .root && $0.folder == folder }.map(\.name).sorted()
    }
    guard let names else { throw .missing(folder.description) }
    return names
  }

  /// Tells what an object or a folder is.
  public func status(_ path: ObjectPath) throws(StoreError) -> ObjectStatus? {
    objects.withLock { objects in
      objects[path].map {
        ObjectStatus(
          isFolder: $0.bytes == nil, size: UInt64($0.bytes?.count ?? 0), modified: $0.modified)
      }
    }
  }

  /// Begins an object.
  public func startObject(in folder: ObjectPath) throws(StoreError) -> any ObjectWriter {
    try requireFolder(folder)
    return MemoryObjectWriter(storage: self, folder: folder)
  }

  /// Makes folders.
  public func makeFolders(_ names: [ByteString], in folder: ObjectPath) throws(StoreError) {
    try requireFolder(folder)
    for name in names {
      let path = folder.appending(name)
      let isNew = objects.withLock { objects in
        if objects[path] != nil { return false }
        objects[path] = Object(bytes: nil, modified: Host.now())
        return true
      }
      if !isNew { throw StoreError(.notEmpty, "make the folder", "\(path)", "it exists already") }
    }
  }

  /// Makes an object or sets its time.
  public func touch(_ path: ObjectPath) throws(StoreError) {
    try put(nil, path)
  }

  /// Moves an object, or a folder with all below it.
  public func rename(_ path: ObjectPath, to target: ObjectPath) throws(StoreError) {
    try requireFolder(target.folder)
    let moved = objects.withLock { objects in
      guard let object = objects.removeValue(forKey: path) else { return false }
      objects[target] = object
      let depth = path.components.count
      for key in objects.keys where key.components.starts(with: path.components) {
        let rest = key.components.dropFirst(depth)
        objects[rest.reduce(target) { $0.appending($1) }] = objects.removeValue(forKey: key)
      }
      return true
    }
    if !moved { throw .missing(path.description) }
  }

  /// Removes an object or an empty folder.
  public func remove(_ path: ObjectPath) throws(StoreError) {
    let isFull = objects.withLock { $0.keys.contains { $0 != .root && $0.folder == path } }
    if isFull { throw StoreError(.notEmpty, "remove", "\(path)", "the folder is not empty") }
    guard objects.withLock({ $0.removeValue(forKey: path) }) != nil else {
      throw .missing(path.description)
    }
  }

  /// Puts an object's bytes, or sets the time of the bytes that are there.
  func put(_ bytes: [UInt8]?, _ path: ObjectPath) throws(StoreError) {
    try requireFolder(path.folder)
    objects.withLock { objects in
      let kept = bytes ?? objects[path]?.bytes ?? []
      objects[path] = Object(bytes: kept, modified: Host.now())
    }
  }

  private func requireFolder(_ path: ObjectPath) throws(StoreError) {
    let isFolder = objects.withLock { $0[path].map { $0.bytes == nil } ?? false }
    if !isFolder { throw .missing(path.description) }
  }
}

/// An object that is being gathered.
private final class MemoryObjectWriter: ObjectWriter {
  private let storage: MemoryStorage
  private let folder: ObjectPath
  private var bytes: [UInt8] = []

  init(storage: MemoryStorage, folder: ObjectPath) {
    self.storage = storage
    self.folder = folder
  }

  func append(_ bytes: [UInt8]) { self.bytes += bytes }

  /// Fails when the folder it began in was taken away, as a rename out of it would.
  func commit(as path: ObjectPath, digest: Digest) throws(StoreError) {
    guard try storage.status(folder) != nil else { throw .missing(folder.description) }
    try storage.put(bytes, path)
  }

  func discard() { bytes = [] }
}

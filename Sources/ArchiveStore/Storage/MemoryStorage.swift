internal import Codecs
internal import Synchronization
public import SystemIO

/// A repository's objects in memory: for tests and for trying things out. Nothing outlives it.
public final class MemoryStorage: Storage {
  private let contents = Mutex(MemoryContents())
  /// The name that messages bear.
  public let place: String

  /// Makes an empty storage.
  public init(name: String = "memory") { place = name }

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
    guard let object = contents.withLock({ $0.objects[path] }) else {
      throw .missing(path.description)
    }
    return object.bytes
  }

  /// Gives the names in a folder.
  public func list(_ folder: ObjectPath) throws(StoreError) -> [ByteString] {
    guard let names = contents.withLock({ $0.folders[folder] }) else {
      throw .missing(folder.description)
    }
    return names.sorted()
  }

  /// Lists the objects as they are when it is called.
  public func forEachObject(
    below folder: ObjectPath, _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError) {
    guard let found = contents.withLock({ $0.objects(below: folder) }) else {
      throw .missing(folder.description)
    }
    for (path, object) in found { try body(path, object.status) }
  }

  /// Tells what an object or a folder is.
  public func status(_ path: ObjectPath) throws(StoreError) -> ObjectStatus? {
    contents.withLock { contents in
      if contents.folders[path] != nil {
        return ObjectStatus(isFolder: true, size: 0, modified: Timestamp(seconds: 0))
      }
      return contents.objects[path]?.status
    }
  }

  /// Begins an object.
  public func startObject(in folder: ObjectPath) throws(StoreError) -> any ObjectWriter {
    guard contents.withLock({ $0.folders[folder] != nil }) else {
      throw .missing(folder.description)
    }
    return MemoryObjectWriter(storage: self, folder: folder)
  }

  /// Makes folders.
  public func makeFolders(_ names: [ByteString], in folder: ObjectPath) throws(StoreError) {
    try change { contents throws(StoreError) in
      for name in names {
        let path = folder.appending(name)
        try contents.add(path)
        contents.folders[path] = []
      }
    }
  }

  /// Makes an object or sets its time.
  public func touch(_ path: ObjectPath) throws(StoreError) {
    try put(contents.withLock { $0.objects[path]?.bytes } ?? [], path)
  }

  /// Moves an object, or a folder with all below it.
  public func rename(_ path: ObjectPath, to target: ObjectPath) throws(StoreError) {
    try change { contents throws(StoreError) in try contents.move(path, to: target) }
  }

  /// Removes an object or an empty folder.
  public func remove(_ path: ObjectPath) throws(StoreError) {
    try change { contents throws(StoreError) in
      if contents.folders[path]?.isEmpty == false {
        throw StoreError(.notEmpty, "remove", "\(path)", "the folder is not empty")
      }
      try contents.take(path)
      contents.objects[path] = nil
      contents.folders[path] = nil
    }
  }

  /// Puts an object's bytes; one that is there is replaced.
  fileprivate func put(_ bytes: [UInt8], _ path: ObjectPath) throws(StoreError) {
    try change { contents throws(StoreError) in
      contents.objects[path] = nil
      _ = contents.folders[path.folder]?.remove(path.name)
      try contents.add(path)
      contents.objects[path] = MemoryContents.Object(bytes: bytes, modified: Host.now())
    }
  }

  private func change(
    _ body: (inout MemoryContents) throws(StoreError) -> Void
  ) throws(StoreError) {
    try contents.withLock { contents throws(StoreError) in try body(&contents) }
  }
}

/// Objects and folders by their paths; each folder knows its names.
private struct MemoryContents {
  struct Object {
    let bytes: [UInt8]
    let modified: Timestamp

    var status: ObjectStatus {
      ObjectStatus(isFolder: false, size: UInt64(bytes.count), modified: modified)
    }
  }

  var objects: [ObjectPath: Object] = [:]
  var folders: [ObjectPath: Set<ByteString>] = [.root: []]

  /// The objects below a folder, at any depth; nil if there is no such folder.
  func objects(below folder: ObjectPath) -> [(ObjectPath, Object)]? {
    guard let names = folders[folder] else { return nil }
    return names.flatMap { name -> [(ObjectPath, Object)] in
      let path = folder.appending(name)
      return objects[path].map { [(path, $0)] } ?? objects(below: path) ?? []
    }
  }

  /// Adds a name to its folder.
  mutating func add(_ path: ObjectPath) throws(StoreError) {
    guard let names = folders[path.folder] else { throw .missing(path.folder.description) }
    guard !names.contains(path.name) else {
      throw StoreError(.notEmpty, "make", "\(path)", "it exists already")
    }
    folders[path.folder]?.insert(path.name)
  }

  /// Takes a name out of its folder.
  mutating func take(_ path: ObjectPath) throws(StoreError) {
    guard folders[path.folder]?.remove(path.name) != nil else {
      throw .missing(path.description)
    }
  }

  mutating func move(_ path: ObjectPath, to target: ObjectPath) throws(StoreError) {
    guard folders[target.folder] != nil else { throw .missing(target.folder.description) }
    try take(path)
    _ = folders[target.folder]?.remove(target.name)
    try add(target)
    moveContents(path, to: target)
  }

  private mutating func moveContents(_ path: ObjectPath, to target: ObjectPath) {
    objects[target] = objects.removeValue(forKey: path)
    folders[target] = folders.removeValue(forKey: path)
    for name in folders[target] ?? [] {
      moveContents(path.appending(name), to: target.appending(name))
    }
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
  func commit(as path: ObjectPath, digest: Digest, isReadSoon: Bool) throws(StoreError) {
    guard try storage.status(folder) != nil else { throw .missing(folder.description) }
    try storage.put(bytes, path)
  }

  func discard() { bytes = [] }
}

package import ArchiveStore
internal import Codecs
internal import Synchronization
package import SystemIO

/// A storage in memory. Its content is lost when it is deallocated.
package final class MemoryStorage: Storage {
  private let contents = Mutex(Contents())
  /// The name used in messages.
  package let location: String

  private let clock: @Sendable () -> Timestamp
  private let number = UInt64.random(in: 0...UInt64.max)

  /// Creates an empty storage, whose clock dates the objects.
  package init(
    name: String = "memory", clock: @escaping @Sendable () -> Timestamp = { Host.now() }
  ) {
    (location, self.clock) = (name, clock)
  }

  /// Returns a storage with the same content.
  package func copy() -> MemoryStorage {
    let copy = MemoryStorage(name: location, clock: clock)
    let now = contents.withLock { $0 }
    copy.contents.withLock { $0 = now }
    return copy
  }

  /// Always true: memory supports rename.
  package var canRename: Bool { true }

  /// A separate directory, so that the storage is used like one of this host.
  package func directoryIdentity() throws(StoreError) -> FileIdentity? {
    FileIdentity(device: .max, inode: number)
  }

  /// Reads a complete object.
  package func load(_ path: ObjectPath, limit: Int) throws(StoreError) -> [UInt8] {
    let bytes = try bytes(path)
    guard bytes.count <= limit else {
      throw damaged(path, "it exceeds the limit of \(limit) bytes")
    }
    return bytes
  }

  /// Reads a range of an object into a buffer.
  package func load(
    _ path: ObjectPath, offset: UInt64, count: Int, into buffer: inout [UInt8]
  ) throws(StoreError) {
    let bytes = try bytes(path)
    guard offset <= UInt64(bytes.count), count <= bytes.count - Int(offset) else {
      throw damaged(path, "it ends before byte \(offset &+ UInt64(count))")
    }
    buffer = Array(bytes[Int(offset)..<(Int(offset) + count)])
  }

  private func bytes(_ path: ObjectPath) throws(StoreError) -> [UInt8] {
    guard let object = contents.withLock({ $0.objects[path] }) else {
      throw missing(path)
    }
    return object.bytes
  }

  /// Returns the names in a directory.
  package func list(_ directory: ObjectPath) throws(StoreError) -> [ByteString] {
    guard let names = contents.withLock({ $0.directories[directory] }) else {
      throw missing(directory)
    }
    return names.sorted()
  }

  /// Lists the objects that exist at the time of the call.
  package func forEachObject(
    below directory: ObjectPath, _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError) {
    guard let found = contents.withLock({ $0.objects(below: directory) }) else {
      throw missing(directory)
    }
    for (path, object) in found { try body(path, object.status) }
  }

  /// Returns the status of an object or directory.
  package func status(_ path: ObjectPath) throws(StoreError) -> ObjectStatus? {
    contents.withLock { contents in
      if contents.directories[path] != nil {
        return ObjectStatus(isDirectory: true, size: 0, modified: Timestamp(seconds: 0))
      }
      return contents.objects[path]?.status
    }
  }

  /// Starts an object.
  package func startObject(in directory: ObjectPath) throws(StoreError) -> any ObjectWriter {
    guard contents.withLock({ $0.directories[directory] != nil }) else {
      throw missing(directory)
    }
    return Writer(storage: self, directory: directory)
  }

  /// Creates directories.
  package func makeDirectories(_ names: [ByteString], in directory: ObjectPath) throws(StoreError) {
    try change { contents throws(StoreError) in
      for name in names {
        let path = directory.appending(name)
        try contents.add(path)
        contents.directories[path] = []
      }
    }
  }

  /// Creates an object if it is missing, or updates its time.
  package func touch(_ path: ObjectPath) throws(StoreError) {
    try store(contents.withLock { $0.objects[path]?.bytes } ?? [], path)
  }

  /// Moves an object, or a directory with everything below it.
  package func rename(_ path: ObjectPath, to target: ObjectPath) throws(StoreError) {
    try change { contents throws(StoreError) in try contents.move(path, to: target) }
  }

  /// Removes an object or an empty directory.
  package func remove(_ path: ObjectPath) throws(StoreError) {
    try change { contents throws(StoreError) in
      if contents.directories[path]?.isEmpty == false {
        throw StoreError(
          .notEmpty, "remove", subject: "\(path)", reason: "the directory is not empty")
      }
      try contents.remove(path)
      contents.objects[path] = nil
      contents.directories[path] = nil
    }
  }

  /// Stores an object's bytes and replaces an existing object.
  fileprivate func store(_ bytes: [UInt8], _ path: ObjectPath) throws(StoreError) {
    try change { contents throws(StoreError) in
      contents.objects[path] = nil
      _ = contents.directories[path.directory]?.remove(path.name)
      try contents.add(path)
      contents.objects[path] = Contents.Object(bytes: bytes, modified: clock())
    }
  }

  private func change(
    _ body: (inout Contents) throws(StoreError) -> Void
  ) throws(StoreError) {
    try contents.withLock { contents throws(StoreError) in try body(&contents) }
  }
}

/// Objects and directories by path. Each directory has the set of its names.
private struct Contents {
  struct Object {
    let bytes: [UInt8]
    let modified: Timestamp

    var status: ObjectStatus {
      ObjectStatus(isDirectory: false, size: UInt64(bytes.count), modified: modified)
    }
  }

  var objects: [ObjectPath: Object] = [:]
  var directories: [ObjectPath: Set<ByteString>] = [.root: []]

  /// Returns the objects below a directory, at any depth, or nil if the directory does not exist.
  func objects(below directory: ObjectPath) -> [(ObjectPath, Object)]? {
    guard let names = directories[directory] else { return nil }
    return names.flatMap { name -> [(ObjectPath, Object)] in
      let path = directory.appending(name)
      return objects[path].map { [(path, $0)] } ?? objects(below: path) ?? []
    }
  }

  /// Adds a name to its directory.
  mutating func add(_ path: ObjectPath) throws(StoreError) {
    guard let names = directories[path.directory] else {
      throw missing(path.directory)
    }
    guard !names.contains(path.name) else {
      throw StoreError(.notEmpty, "create", subject: "\(path)", reason: "it already exists")
    }
    directories[path.directory]?.insert(path.name)
  }

  /// Removes a name from its directory.
  mutating func remove(_ path: ObjectPath) throws(StoreError) {
    guard directories[path.directory]?.remove(path.name) != nil else {
      throw missing(path)
    }
  }

  mutating func move(_ path: ObjectPath, to target: ObjectPath) throws(StoreError) {
    guard directories[target.directory] != nil else { throw missing(target.directory) }
    if directories[path] != nil, directories[target]?.isEmpty == false {
      throw StoreError(
        .notEmpty, "rename", subject: "\(path)", reason: "'\(target)' is not empty")
    }
    try remove(path)
    _ = directories[target.directory]?.remove(target.name)
    try add(target)
    moveContents(path, to: target)
  }

  private mutating func moveContents(_ path: ObjectPath, to target: ObjectPath) {
    objects[target] = objects.removeValue(forKey: path)
    directories[target] = directories.removeValue(forKey: path)
    for name in directories[target] ?? [] {
      moveContents(path.appending(name), to: target.appending(name))
    }
  }
}

/// An object that is being written.
private final class Writer: ObjectWriter {
  private let storage: MemoryStorage
  private let directory: ObjectPath
  private var bytes: [UInt8] = []

  init(storage: MemoryStorage, directory: ObjectPath) {
    self.storage = storage
    self.directory = directory
  }

  func append(_ bytes: [UInt8]) { self.bytes += bytes }

  /// Fails if the directory in which it was started no longer exists, as a rename would.
  func commit(as path: ObjectPath, digest: Digest, isReadSoon: Bool) throws(StoreError) {
    guard try storage.status(directory) != nil else { throw missing(directory) }
    try storage.store(bytes, path)
  }

  func discard() { bytes = [] }
}

private func missing(_ path: ObjectPath) -> StoreError {
  StoreError(.missing, "read", subject: "\(path)", reason: "it is not in the repository")
}

private func damaged(_ path: ObjectPath, _ reason: String) -> StoreError {
  StoreError(.damaged, "use", subject: "\(path)", reason: reason)
}

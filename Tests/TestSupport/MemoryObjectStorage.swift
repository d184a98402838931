package import ArchiveStore
internal import Codecs
package import Synchronization
package import SystemIO

/// An object store in memory: no rename and no directories, as S3. Its content is lost when it is
/// deallocated.
///
/// It counts requests, and a test can inspect each before it is done, make it fail, or lose the
/// answer although it was done.
package final class MemoryObjectStorage: Storage {
  /// A failure of a request.
  package enum Fault: Sendable {
    /// It is not done, and fails.
    case refused
    /// It is done, and fails.
    case answerLost
  }

  /// The state that a test reads and sets.
  package struct State: Sendable {
    /// The requests so far, as text: "get index/ab…", "put packs/…".
    package var requests: [String] = []
    /// Called before each request with its text, without a lock.
    package var hook: (@Sendable (String) -> Fault?)?
    /// The seconds that are added to the clock.
    fileprivate var offset = 0.0
    fileprivate var objects: [ObjectPath: Object] = [:]
  }

  fileprivate struct Object: Sendable {
    let bytes: [UInt8]
    let modified: Timestamp

    var status: ObjectStatus {
      ObjectStatus(isDirectory: false, size: UInt64(bytes.count), modified: modified)
    }
  }

  package let state = Mutex(State())
  /// The name used in messages.
  package let location: String
  /// Whether it knows conditional requests.
  package let canCreateExclusively: Bool
  private let clock: @Sendable () -> Timestamp

  /// Creates an empty store, whose clock dates the objects.
  package init(
    name: String = "objects", canCreateExclusively: Bool = true,
    clock: @escaping @Sendable () -> Timestamp = { Host.now() }
  ) {
    (location, self.canCreateExclusively, self.clock) = (name, canCreateExclusively, clock)
  }

  /// Returns a store with the same content and time.
  package func copy() -> MemoryObjectStorage {
    let copy = MemoryObjectStorage(
      name: location, canCreateExclusively: canCreateExclusively, clock: clock)
    let (objects, offset) = state.withLock { ($0.objects, $0.offset) }
    copy.state.withLock { ($0.objects, $0.offset) = (objects, offset) }
    return copy
  }

  /// Always false.
  package var canRename: Bool { false }

  /// The current time of the store's clock.
  package var now: Timestamp {
    let (time, offset) = (clock(), state.withLock(\.offset))
    return Timestamp(seconds: time.seconds + Int64(offset), nanoseconds: time.nanoseconds)
  }

  /// Moves the clock forward, or back.
  package func advance(by seconds: Double) { state.withLock { $0.offset += seconds } }

  /// All objects, sorted by path.
  package var paths: [ObjectPath] {
    state.withLock { Array($0.objects.keys) }.sorted {
      $0.components.lexicographicallyPrecedes($1.components)
    }
  }

  fileprivate func request<Result>(
    _ text: String, _ body: (inout State, Timestamp) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    let hook = state.withLock { state in
      state.requests.append(text)
      return state.hook
    }
    let fault = hook?(text)
    if fault == .refused { throw Self.failure(text) }
    let now = now
    let result = try state.withLock { state throws(StoreError) in try body(&state, now) }
    if fault == .answerLost { throw Self.failure(text) }
    return result
  }

  private static func failure(_ text: String) -> StoreError {
    StoreError(.system, "do", subject: text, reason: "the test says so")
  }
}

// MARK: - Requests

extension MemoryObjectStorage {
  /// Reads a complete object.
  package func load(_ path: ObjectPath, limit: Int) throws(StoreError) -> [UInt8] {
    try request("get \(path)") { state, _ throws(StoreError) in
      let bytes = try state.bytes(path)
      guard bytes.count <= limit else {
        throw damaged(path, "it exceeds the limit of \(limit) bytes")
      }
      return bytes
    }
  }

  /// Reads a range of an object into a buffer.
  package func load(
    _ path: ObjectPath, offset: UInt64, count: Int, into buffer: inout [UInt8]
  ) throws(StoreError) {
    buffer = try request("range \(path)") { state, _ throws(StoreError) in
      let bytes = try state.bytes(path)
      guard offset <= UInt64(bytes.count), count <= bytes.count - Int(offset) else {
        throw damaged(path, "it ends before byte \(offset &+ UInt64(count))")
      }
      return Array(bytes[Int(offset)..<(Int(offset) + count)])
    }
  }

  /// Returns the next components of all paths below a prefix.
  package func list(_ directory: ObjectPath) throws(StoreError) -> [ByteString] {
    try request("list \(directory)") { state, _ in
      let depth = directory.components.count
      return Set(state.below(directory).map { $0.key.components[depth] }).sorted()
    }
  }

  /// Lists the objects that exist at the time of the call.
  package func forEachObject(
    below directory: ObjectPath, _ body: (ObjectPath, ObjectStatus) throws(StoreError) -> Void
  ) throws(StoreError) {
    let found = try request("objects \(directory)") { state, _ in
      state.below(directory).map { ($0.key, $0.value.status) }
    }
    for (path, status) in found { try body(path, status) }
  }

  /// Returns the status of an object or a prefix.
  package func status(_ path: ObjectPath) throws(StoreError) -> ObjectStatus? {
    try request("status \(path)") { state, _ in
      if let object = state.objects[path] { return object.status }
      let time = Timestamp(seconds: 0)
      return state.below(path).isEmpty
        ? nil : ObjectStatus(isDirectory: true, size: 0, modified: time)
    }
  }

  /// Starts an object, which is in memory until it is put.
  package func startObject(in directory: ObjectPath) throws(StoreError) -> any ObjectWriter {
    Upload(self)
  }

  /// Does nothing: there are no directories.
  package func makeDirectories(_ names: [ByteString], in directory: ObjectPath) throws(StoreError) {
  }

  /// Puts an empty object.
  package func touch(_ path: ObjectPath) throws(StoreError) { try put([], as: path) }

  fileprivate func put(_ bytes: [UInt8], as path: ObjectPath) throws(StoreError) {
    try request("put \(path)") { state, now in
      state.objects[path] = Object(bytes: bytes, modified: now)
    }
  }

  /// Puts an object if there is none.
  package func create(_ bytes: [UInt8], as path: ObjectPath) throws(StoreError) -> Bool {
    guard canCreateExclusively else { throw unsupported("create", path) }
    return try request("create \(path)") { state, now in
      if state.objects[path] != nil { return false }
      state.objects[path] = Object(bytes: bytes, modified: now)
      return true
    }
  }

  /// Always fails.
  package func rename(_ path: ObjectPath, to target: ObjectPath) throws(StoreError) {
    throw unsupported("rename", path)
  }

  /// Removes an object; as in S3, a missing object is not an error.
  package func remove(_ path: ObjectPath) throws(StoreError) {
    try request("delete \(path)") { state, _ in state.objects[path] = nil }
  }

  /// Removes objects, a thousand in each request.
  package func remove(_ paths: [ObjectPath]) throws(StoreError) {
    for start in stride(from: 0, to: paths.count, by: 1000) {
      let part = paths[start..<min(start + 1000, paths.count)]
      try request("delete \(part.count) objects, the first \(part[start])") { state, _ in
        for path in part { state.objects[path] = nil }
      }
    }
  }

  private func unsupported(_ action: String, _ path: ObjectPath) -> StoreError {
    StoreError(
      .unsupported, action, subject: "\(path)", reason: "the store does not support it")
  }
}

extension MemoryObjectStorage.State {
  fileprivate func bytes(_ path: ObjectPath) throws(StoreError) -> [UInt8] {
    guard let object = objects[path] else {
      throw StoreError(.missing, "read", subject: "\(path)", reason: "it is not in the repository")
    }
    return object.bytes
  }

  /// Returns the objects below a prefix.
  fileprivate func below(_ path: ObjectPath) -> [ObjectPath: MemoryObjectStorage.Object] {
    let prefix = path.components
    return objects.filter {
      $0.key.components.count > prefix.count && $0.key.components.starts(with: prefix)
    }
  }
}

/// An object that is being written.
private final class Upload: ObjectWriter {
  private let storage: MemoryObjectStorage
  private var bytes: [UInt8] = []

  init(_ storage: MemoryObjectStorage) { self.storage = storage }

  func append(_ bytes: [UInt8]) { self.bytes += bytes }

  func commit(as path: ObjectPath, digest: Digest, isReadSoon: Bool) throws(StoreError) {
    try storage.put(bytes, as: path)
  }

  func discard() { bytes = [] }
}

private func damaged(_ path: ObjectPath, _ reason: String) -> StoreError {
  StoreError(.damaged, "use", subject: "\(path)", reason: reason)
}

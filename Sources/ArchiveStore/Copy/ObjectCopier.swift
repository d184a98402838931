internal import Codecs
internal import Synchronization
internal import SystemIO

/// Copies objects byte for byte from one storage to another, and verifies each against its id
/// before it gets its name. Age files may get another header, and so another name. Safe to use from
/// any thread.
final class ObjectCopier: Sendable {
  private let source: RepositoryStorage
  private let lease: Lease
  private let counters: ProgressCounters
  private let expects: Bool

  /// An object that is named by the hash of its bytes.
  struct Object: Sendable {
    let id: Digest
    let path: ObjectPath
    /// The size in bytes.
    let size: UInt64
    /// The header that replaces that of an age file; nil for a copy of the same bytes.
    var header: NewHeader?
  }

  /// A header for other recipients.
  struct NewHeader: Sendable {
    let bytes: [UInt8]
    /// The number of bytes that it replaces, at most the maximum of a header.
    let replaced: Int
    /// Returns the path of the copy, which has another id.
    let path: @Sendable (Digest) -> ObjectPath
  }

  /// The result of copying objects.
  struct Result {
    var objects: [Object] = []
    /// The copies with another header, by the ids of their originals.
    var rewritten: [Digest: Copied] = [:]
    var bytes: UInt64 = 0
    /// The number of copied objects.
    var copied: Int { objects.count }

    /// The objects that are damaged in the source, with the reason.
    var damaged: [(object: Object, error: StoreError)] = []
    /// Whether an object no longer exists in the source.
    var hasGone = false
    /// Whether objects remain because the copy was interrupted.
    var isInterrupted = false
  }

  /// A copy with its own id and size.
  struct Copied: Sendable {
    let id: Digest
    let size: UInt64
  }

  private static let pieceLength = 1 << 20

  /// - Parameter expects: whether the objects add to the expected totals of the counters.
  init(
    from source: RepositoryStorage, by lease: Lease, counters: ProgressCounters,
    expects: Bool = true
  ) {
    (self.source, self.lease, self.counters, self.expects) = (source, lease, counters, expects)
  }

  /// Copies objects on `threads` threads. After an interruption the objects that were begun are
  /// complete.
  func copy(
    _ objects: [Object], threads: Int, isReadSoon: Bool,
    isStopping: @escaping @Sendable () -> Bool
  ) throws -> Result {
    guard !objects.isEmpty else { return Result() }
    if expects {
      counters.expect(files: objects.count, bytes: objects.reduce(0) { $0 + $1.size })
    }
    let count = min(threads, objects.count)
    let workers = try StoreError.wrap { () throws(SystemError) in
      try Workers(count: count, capacity: count, name: "mirror")
    }
    let box = SharedState()
    for _ in 0..<count {
      workers.submit { [self] in
        while let object = box.next(objects, isStopping) {
          do throws(StoreError) {
            box.didCopy(object, as: try copy(object, isReadSoon: isReadSoon))
          } catch {
            box.didFail(object, error)
          }
        }
      }
    }
    workers.finish()
    return try box.finish()
  }

  /// Copies one object. An object on another host is read twice before it counts as damaged.
  ///
  /// - Throws: `damaged` if its bytes do not match its id, `missing` if it does not exist.
  @discardableResult
  func copy(_ object: Object, isReadSoon: Bool) throws(StoreError) -> Copied {
    try source.readingTwice(object.path) { () throws(StoreError) in
      try copyOnce(object, isReadSoon: isReadSoon)
    }
  }

  private func copyOnce(_ object: Object, isReadSoon: Bool) throws(StoreError) -> Copied {
    counters.begin(ByteString("\(object.path)"))
    let writer = try inTarget { () throws(StoreError) in
      try lease.storage.startObject(in: lease.path)
    }
    do throws(StoreError) {
      let rewriting = Rewriting(object.header)
      let digest = try Self.digest(of: object, in: source) { piece throws(StoreError) in
        try inTarget { () throws(StoreError) in
          try lease.keepAlive()
          try writer.append(rewriting?.next(piece) ?? piece)
        }
        counters.didHandle(bytes: UInt64(piece.count))
      }
      guard digest == object.id else { throw .wrongContent(of: object.path) }
      let copied = rewriting?.finish() ?? Copied(id: digest, size: object.size)
      try inTarget { () throws(StoreError) in
        try lease.sending { () throws(StoreError) in
          try writer.commit(
            as: object.header?.path(copied.id) ?? object.path, digest: copied.id,
            isReadSoon: isReadSoon)
        }
      }
      counters.didHandle(files: 1)
      return copied
    } catch {
      writer.discard()
      throw error
    }
  }

  /// Makes calls of the target. Their failures never count as damage of the source.
  private func inTarget<Value>(
    _ body: () throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    do throws(StoreError) {
      return try lease.explained(body)
    } catch {
      guard error.kind == .damaged else { throw error }
      throw StoreError(
        .system, error.action, subject: error.subject, reason: error.reason, hint: error.hint,
        cause: error.cause)
    }
  }

  /// Whether a storage has the bytes of an object. Its size is that in the storage. An object on
  /// another host is read twice before it counts as damaged.
  static func isIntact(
    _ id: Digest, at path: ObjectPath, in storage: RepositoryStorage
  ) throws(StoreError) -> Bool {
    guard let size = try storage.status(path)?.size else { return false }
    let object = Object(id: id, path: path, size: size)
    do throws(StoreError) {
      try storage.readingTwice(path) { () throws(StoreError) in
        guard try digest(of: object, in: storage) == id else { throw .wrongContent(of: path) }
      }
      return true
    } catch {
      guard error.kind == .damaged else { throw error }
      return false
    }
  }

  /// Returns the hash of an object's bytes, which are passed to `body` piece by piece.
  static func digest(
    of object: Object, in storage: RepositoryStorage,
    _ body: ([UInt8]) throws(StoreError) -> Void = { _ in }
  ) throws(StoreError) -> Digest {
    var hash = Blake2b()
    var (offset, piece) = (UInt64(0), [UInt8]())
    while offset < object.size {
      let count = Int(min(object.size - offset, UInt64(pieceLength)))
      try storage.load(object.path, offset: offset, count: count, into: &piece)
      hash.update(piece)
      try body(piece)
      offset += UInt64(count)
    }
    return hash.finish()
  }
}

extension ObjectCopier {
  /// Replaces the header in the pieces of an object. The first piece contains it.
  private final class Rewriting {
    private let header: NewHeader
    private var hash = Blake2b()
    private var size: UInt64 = 0

    init?(_ header: NewHeader?) {
      guard let header else { return nil }
      self.header = header
    }

    /// Returns the bytes to write for the next piece.
    func next(_ piece: [UInt8]) -> [UInt8] {
      var bytes = piece
      if size == 0 { bytes.replaceSubrange(..<header.replaced, with: header.bytes) }
      hash.update(bytes)
      size += UInt64(bytes.count)
      return bytes
    }

    func finish() -> Copied { Copied(id: hash.finish(), size: size) }
  }

  /// The state that the threads of a copy share.
  private final class SharedState: Sendable {
    private struct State {
      var result = Result()
      var next = 0
      var failure: StoreError?
    }

    private let state = Mutex(State())

    /// Returns the next object, or nil at the end, after a failure, or after an interruption.
    func next(_ objects: [Object], _ isStopping: () -> Bool) -> Object? {
      let isOver = state.withLock { $0.failure != nil || $0.next >= objects.count }
      if isOver { return nil }
      if isStopping() {
        state.withLock { $0.result.isInterrupted = true }
        return nil
      }
      return state.withLock { state in
        guard state.next < objects.count else { return nil }
        state.next += 1
        return objects[state.next - 1]
      }
    }

    func didCopy(_ object: Object, as copied: Copied) {
      state.withLock { state in
        state.result.objects.append(object)
        if object.header != nil { state.result.rewritten[object.id] = copied }
        state.result.bytes += object.size
      }
    }

    func didFail(_ object: Object, _ error: StoreError) {
      state.withLock { state in
        switch error.kind {
        case .damaged where error.code == .missing: state.result.hasGone = true
        case .damaged: state.result.damaged.append((object, error))
        default: state.failure = state.failure ?? error
        }
      }
    }

    /// Returns the result, or throws the first failure other than damage.
    func finish() throws(StoreError) -> Result {
      let state = state.withLock { $0 }
      if let failure = state.failure { throw failure }
      return state.result
    }
  }
}

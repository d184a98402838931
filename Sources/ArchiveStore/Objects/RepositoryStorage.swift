internal import Codecs
internal import SystemIO

/// The storage of a repository, with the content of its objects: packs, index objects and
/// snapshots, which are age files in an encrypted repository.
///
/// As a `Storage` it passes all calls on, and so handles stored bytes. An object is named by the
/// hash of its stored bytes; positions in an object refer to its content.
public struct RepositoryStorage: ForwardingStorage {
  /// The storage of the stored bytes.
  public let base: any Storage
  /// The encryption of objects; nil if the repository has none.
  let cipher: ObjectCipher?

  init(_ base: any Storage, cipher: ObjectCipher?) {
    self.base = (base as? RepositoryStorage)?.base ?? base
    self.cipher = cipher
  }

  /// Whether the content of objects can be read: false in an encrypted repository without an
  /// identity.
  var canRead: Bool { cipher?.canRead ?? true }

  /// Checks that the content of objects can be read.
  ///
  /// - Throws: `keyRequired` if not.
  func requireReadable() throws(StoreError) {
    try cipher?.requireIdentity(location)
  }

  /// The paths of the objects.
  var layout: RepositoryLayout { RepositoryLayout(isEncrypted: cipher != nil) }
}

// MARK: - Several objects

extension RepositoryStorage {
  /// Returns the results of `body` for items, in their order: on another host by several requests
  /// at the same time, otherwise one after another.
  func results<Item: Sendable, Value: Sendable>(
    of items: some Sequence<Item>,
    _ body: @escaping @Sendable (Item) throws(StoreError) -> Value
  ) -> [Result<Value, StoreError>] {
    Workers.results(of: Array(items), threads: concurrency, name: "requests") { item in
      Result { () throws(StoreError) in try body(item) }
    }
  }

  /// The number of items after which a command with concurrent requests waits for all of them, so
  /// that it holds few results and can end.
  var itemsAtOnce: Int { concurrency > 1 ? concurrency * 4 : 1 }

  /// Calls `receive` with each item and the result of `body` for it, in their order. At most
  /// `itemsAtOnce` are begun before their results are received; none after an error of `receive`.
  func forEach<Item: Sendable, Value: Sendable>(
    _ items: [Item], _ body: @escaping @Sendable (Item) throws(StoreError) -> Value,
    receive: (Item, Result<Value, StoreError>) throws(StoreError) -> Void
  ) throws(StoreError) {
    for part in items.parts(of: itemsAtOnce) {
      for (item, result) in zip(part, results(of: part, body)) { try receive(item, result) }
    }
  }
}

extension Array {
  /// Returns parts of `count` elements; the last one has the rest.
  func parts(of count: Int) -> some Sequence<ArraySlice<Element>> {
    stride(from: 0, to: self.count, by: count).lazy.map { start in
      self[start..<Swift.min(start + count, self.count)]
    }
  }
}

// MARK: - Reading objects

extension RepositoryStorage {
  /// Requests an object from another host after it failed to send another one. If that fails as
  /// well, the wait for each further object would be as long as for the first one.
  ///
  /// - Throws: `failure`, if the host does not answer, or if the user has interrupted the wait.
  func requireAnswer(after failure: StoreError) throws(StoreError) {
    if failure.code == .interrupted { throw failure }
    guard failure.isStoreFailure, isOnAnotherHost else { return }
    do throws(StoreError) { _ = try status(RepositoryLayout.settings) } catch { throw failure }
  }

  /// Calls `body`, which reads an object, and once more if that finds damage on another host: bytes
  /// may have been changed or cut off in transit, or in what was read ahead.
  func readingTwice<Value>(
    _ path: ObjectPath, _ body: () throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    do throws(StoreError) { return try body() } catch {
      guard error.code == .damaged, isOnAnotherHost else { throw error }
      forgetReads(of: path)
      return try body()
    }
  }

  /// Returns the content of an object after comparing its stored bytes with its id. An object on
  /// another host is read twice before it counts as damaged.
  ///
  /// - Parameter limit: the maximum size of the content in bytes.
  /// - Throws: `damaged` if the bytes do not match the id, are larger or cannot be decrypted;
  ///   `keyRequired` without the key; `missing` if there is no such object.
  func load(_ id: Digest, kind: ObjectKind, limit: Int) throws(StoreError) -> [UInt8] {
    try load(id, at: layout.path(id, kind: kind), limit: limit)
  }

  /// Returns the content of an object that may have another path than others of its kind.
  func load(_ id: Digest, at path: ObjectPath, limit: Int) throws(StoreError) -> [UInt8] {
    let stored = try loadStored(id, at: path, limit: storedLimit(of: limit))
    guard let cipher else { return stored }
    let content = try cipher.decrypt(stored, "\(path)")
    guard content.count <= limit else {
      throw .damaged("\(path)", "it exceeds the limit of \(limit) bytes")
    }
    return content
  }

  /// Returns the stored bytes of an object that is named by their hash. Those on another host are
  /// read twice before the object counts as damaged.
  ///
  /// - Parameter limit: the maximum stored size in bytes.
  /// - Throws: `damaged` if the bytes do not match the id, or are more; `missing` if there is no
  ///   such object.
  func loadStored(_ id: Digest, at path: ObjectPath, limit: Int) throws(StoreError) -> [UInt8] {
    try readingTwice(path) { () throws(StoreError) in
      let stored = try load(path, limit: limit)
      guard Blake2b.hash(stored) == id else { throw .wrongContent(of: path) }
      return stored
    }
  }

  /// The maximum stored size of an object whose content has at most `limit` bytes.
  func storedLimit(of limit: Int) -> Int {
    cipher == nil ? limit : ObjectCipher.storedLimit(of: limit)
  }

  /// Calls `body` with the pieces of an object's content, and then compares its stored bytes with
  /// its id; a small object is read at once. If that fails, the effects of `body` must be undone.
  ///
  /// - Parameters:
  ///   - size: the stored size in bytes.
  ///   - pieceLength: the number of stored bytes to read at a time.
  func forEachPiece(
    of id: Digest, kind: ObjectKind, size: UInt64, by pieceLength: Int = 4 << 20,
    _ body: ([UInt8]) throws(StoreError) -> Void
  ) throws(StoreError) {
    if size <= UInt64(pieceLength) {
      return try body(try load(id, kind: kind, limit: pieceLength))
    }
    let path = layout.path(id, kind: kind)
    var hash = Blake2b()
    var decoder = try cipher.map { cipher throws(StoreError) in
      try cipher.decoder(of: path, size: size, in: base)
    }
    var (offset, piece, content) = (UInt64(0), [UInt8](), [UInt8]())
    while offset < size {
      let count = Int(min(size - offset, UInt64(pieceLength)))
      try load(path, offset: offset, count: count, into: &piece)
      hash.update(piece)
      offset += UInt64(count)
      guard decoder != nil else {
        try body(piece)
        continue
      }
      content.removeAll(keepingCapacity: true)
      try decoder?.decode(piece, isLast: offset == size, appendingTo: &content)
      try body(content)
    }
    guard hash.finish() == id else { throw .wrongContent(of: path) }
  }

  /// Returns a pack's decryption, or nil if it is not encrypted.
  ///
  /// - Parameter size: the stored size in bytes; nil to ask the storage.
  func encryption(ofPack id: Digest, stored size: UInt64?) throws(StoreError) -> EncryptedPack? {
    try cipher?.pack(id, at: layout.pack(id), size: size, in: base)
  }

  /// Returns the end of the content that can be read of a pack with `size` stored bytes, which may
  /// have been cut off: 0 if its head is damaged.
  ///
  /// - Throws: failures of the storage; `keyRequired` without an identity.
  func contentLimit(ofPack id: Digest, stored size: UInt64) throws(StoreError) -> UInt64 {
    do throws(StoreError) {
      return try encryption(ofPack: id, stored: size)?.contentLimit ?? size
    } catch {
      guard error.code == .damaged else { throw error }
      return 0
    }
  }

  /// Replaces the content of a buffer by `count` bytes of a pack's content from `offset`. They are
  /// authentic if the repository is encrypted, but not compared with the pack's id.
  ///
  /// - Parameter ciphertext: a buffer for the encrypted bytes, which a caller keeps for its memory.
  func load(
    pack id: Digest, offset: UInt64, count: Int, into buffer: inout [UInt8],
    ciphertext: inout [UInt8]
  ) throws(StoreError) {
    let path = layout.pack(id)
    guard let pack = try encryption(ofPack: id, stored: nil) else {
      return try base.load(path, offset: offset, count: count, into: &buffer)
    }
    let range = offset..<(offset + UInt64(count))
    let stored = try pack.storedRange(of: range)
    try base.load(
      path, offset: stored.lowerBound, count: stored.count, into: &ciphertext)
    buffer.removeAll(keepingCapacity: true)
    try pack.decrypt(range, stored: ciphertext, appendingTo: &buffer)
  }

  /// Returns `count` bytes of a pack's content from `offset`.
  func load(pack id: Digest, offset: UInt64, count: Int) throws(StoreError) -> [UInt8] {
    var bytes: [UInt8] = []
    var ciphertext: [UInt8] = []
    try load(pack: id, offset: offset, count: count, into: &bytes, ciphertext: &ciphertext)
    return bytes
  }
}

extension RepositoryStorage {
  /// Announces the ranges of packs' contents that are read next. The positions of the pieces of
  /// encrypted packs are known only roughly before their heads are read: a little more is expected.
  ///
  /// - Parameter sizes: the stored sizes of the packs.
  func expect(
    _ ranges: [(pack: Digest, content: Range<UInt64>)], sizes: [Digest: UInt64]
  ) {
    base.expect(
      ranges.compactMap { pack, content in
        guard let size = sizes[pack], content.upperBound <= size else { return nil }
        return ObjectRange(
          path: layout.pack(pack),
          range: cipher == nil
            ? content : ObjectCipher.storedRange(around: content, size: size))
      })
  }
}

extension StoreError {
  /// Returns the error for an object that is named by the hash of other bytes.
  static func wrongContent(of path: ObjectPath) -> StoreError {
    .damaged("\(path)", "its content does not match its id")
  }
}

// MARK: - Writing objects

extension RepositoryStorage {
  /// Returns the stored bytes of an object, and its id.
  ///
  /// - Throws: `keyRequired` if the repository is encrypted and its recipients are not known.
  func encode(_ content: [UInt8]) throws(StoreError) -> EncodedObject {
    guard let cipher else { return EncodedObject(content) }
    return EncodedObject(try cipher.encrypt(content, location))
  }

  /// Starts an object in a directory of the storage, which is hashed with the others of a hasher,
  /// or alone.
  func startEncoding(
    in directory: ObjectPath, hashedBy hasher: MultiStreamHasher? = nil
  ) throws(StoreError) -> ObjectEncoder {
    let file = try cipher.map { cipher throws(StoreError) in try cipher.newFile(location) }
    return ObjectEncoder(try base.startObject(in: directory), hashedBy: hasher, file: file)
  }
}

/// An object as it is stored.
struct EncodedObject {
  let id: Digest
  let bytes: [UInt8]

  /// The stored size in bytes.
  var size: UInt64 { UInt64(bytes.count) }

  /// The object with these stored bytes.
  init(_ bytes: [UInt8]) { (id, self.bytes) = (Blake2b.hash(bytes), bytes) }
}

import Codecs
import SystemIO
import TestSupport

@testable import ArchiveStore

// Most tests access the objects of a repository directly in its storage, with the encryption that
// the current run tests (`TestEncryption`).

extension RepositoryStorage {
  /// A storage with the encryption that this run tests.
  init(_ base: any Storage) {
    self = base as? RepositoryStorage ?? RepositoryStorage(base, cipher: Self.tested)
  }

  private static let tested = TestEncryption.keys.map {
    ObjectCipher(identities: $0.identities, recipients: $0.recipients)
  }
}

extension RepositoryLayout {
  /// The layout with the encryption that this run tests.
  static let tested = RepositoryLayout(isEncrypted: TestEncryption.keys != nil)
}

extension Lease {
  convenience init(
    _ storage: any Storage, clock: @escaping @Sendable () -> Double = Host.monotonicSeconds
  ) throws(StoreError) {
    try self.init(RepositoryStorage(storage), with: [], clock: clock)
  }
}

extension RepositoryListing {
  static func packs(_ storage: any Storage) throws(StoreError) -> Set<Digest> {
    try packs(RepositoryStorage(storage))
  }

  static func packSizes(_ storage: any Storage) throws(StoreError) -> [Digest: UInt64] {
    try packSizes(RepositoryStorage(storage))
  }

  static func indexes(_ storage: any Storage) throws(StoreError) -> [Digest] {
    try indexes(RepositoryStorage(storage))
  }

  static func snapshots(_ storage: any Storage) throws(StoreError) -> [Digest] {
    try snapshots(RepositoryStorage(storage))
  }
}

extension LoadedIndex {
  static func loadAll(
    from storage: any Storage, cache: IndexCache? = nil
  ) throws(StoreError) -> LoadedIndex {
    try loadAll(from: RepositoryStorage(storage), cache: cache, known: [])
  }
}

extension PackTables {
  static func load(
    _ id: Digest, size: UInt64, from storage: any Storage
  ) throws(StoreError) -> PackTables {
    try load(id, size: size, from: RepositoryStorage(storage))
  }
}

extension RepositoryInventory {
  init(_ storage: any Storage) throws(StoreError) {
    try self.init(RepositoryStorage(storage), besides: nil)
  }
}

extension CondemnedObjects {
  init(_ storage: any Storage) throws(StoreError) { try self.init(RepositoryStorage(storage)) }
}

extension DamageRecords {
  init(_ storage: any Storage) throws(StoreError) { try self.init(RepositoryStorage(storage)) }
}

extension IndexObject {
  /// Opens an object whose content is these bytes.
  init(bytes: [UInt8]) throws(StoreError) {
    try self.init(
      id: Blake2b.hash(bytes), content: SpillableArray(bytes), storedSize: UInt64(bytes.count))
  }

  static func load(
    _ id: Digest, from storage: any Storage, by pieceLength: Int = 4 << 20
  ) throws(StoreError) -> IndexObject {
    try load(id, from: RepositoryStorage(storage), by: pieceLength, listed: nil)
  }

  static func open(_ id: Digest, from storage: any Storage) throws(StoreError) -> IndexObject {
    try open(id, from: RepositoryStorage(storage), cache: nil)
  }
}

extension IndexCache {
  /// A cache with the encryption that this run tests.
  convenience init(directory: ByteString) {
    self.init(directory: directory, isEncrypted: TestEncryption.keys != nil)
  }
}

// MARK: - Objects by content

extension Storage {
  /// Returns the content of an object, whether or not its stored bytes match its id.
  func content(_ path: ObjectPath) throws -> [UInt8] {
    let stored = try load(path, limit: 1 << 30)
    guard let keys = TestEncryption.keys else { return stored }
    return try AgeFile(opening: stored.span, with: keys.identities).decrypt(stored.span)
  }
}

extension MemoryStorage {
  /// Stores an object with this content, and returns its id.
  @discardableResult
  func put(_ content: [UInt8], kind: ObjectKind) throws -> Digest {
    let object = try RepositoryStorage(self).encode(content)
    try put(object.bytes, RepositoryLayout.tested.path(object.id, kind: kind))
    return object.id
  }

  /// Changes the content of an object, which keeps its name. In an encrypted repository, the
  /// content is encrypted again with the same file key. This requires the key, but any other change
  /// would damage a whole piece.
  func changeContent(_ path: ObjectPath, _ body: (inout [UInt8]) -> Void) throws {
    guard let keys = TestEncryption.keys else { return try change(path, body) }
    let stored = try load(path, limit: 1 << 30)
    let file = try AgeFile(opening: stored.span, with: keys.identities)
    var content = try file.decrypt(stored.span)
    body(&content)
    try put(file.encrypt(content.span), path)
  }
}

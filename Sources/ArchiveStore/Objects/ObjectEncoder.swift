internal import Codecs

/// An object that is being written: encrypted in an encrypted repository, and its stored bytes are
/// hashed.
///
/// Not thread-safe. Objects that are written at the same time are encrypted by the threads that
/// append to them.
struct ObjectEncoder: ~Copyable {
  /// The number of bytes that are encrypted, written and hashed while they are in the processor's
  /// cache.
  private static let portion = 256 << 10

  private let writer: any ObjectWriter
  private var hash: MultiStreamHasher.Stream
  private var encryptor: AgeEncryptor?
  /// The stored bytes of the last call; kept to reuse their memory.
  private var stored: [UInt8] = []
  /// The number of stored bytes.
  private(set) var size: UInt64 = 0
  /// Whether a write has failed, so that the file may be incomplete.
  private(set) var isTorn = false

  /// - Parameter file: the encrypted file; nil for an object without encryption.
  init(_ writer: any ObjectWriter, hashedBy hasher: MultiStreamHasher?, file: AgeFile?) {
    self.writer = writer
    hash = MultiStreamHasher.Stream(of: hasher)
    if let file { encryptor = AgeEncryptor(file) }
  }

  /// Appends content.
  mutating func append(_ bytes: [UInt8]) throws(StoreError) {
    guard encryptor != nil else { return try write(bytes) }
    for start in stride(from: 0, to: bytes.count, by: Self.portion) {
      let end = min(bytes.count, start + Self.portion)
      stored.removeAll(keepingCapacity: true)
      encryptor?.encrypt(bytes.span.extracting(start..<end), appendingTo: &stored)
      try write(stored)
    }
  }

  private mutating func write(_ bytes: [UInt8]) throws(StoreError) {
    isTorn = true
    try writer.append(bytes)
    isTorn = false
    hash.append(bytes)
    size += UInt64(bytes.count)
  }

  /// Appends the rest of the stored bytes, and returns the object's id.
  mutating func finish() throws(StoreError) -> Digest {
    if let encryptor = encryptor.take() {
      stored.removeAll(keepingCapacity: true)
      encryptor.finish(appendingTo: &stored)
      try write(stored)
    }
    return hash.finish()
  }

  /// Makes the finished object durable under its name.
  func commit(as path: ObjectPath, id: Digest, isReadSoon: Bool) throws(StoreError) {
    try writer.commit(as: path, digest: id, isReadSoon: isReadSoon)
  }

  func discard() { writer.discard() }
}

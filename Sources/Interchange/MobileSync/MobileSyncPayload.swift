internal import Codecs
internal import SystemIO

/// The content of a file in a backup, decrypted while it is read.
struct MobileSyncPayload: ~Copyable {
  private let file: Descriptor
  /// The status of the stored content when it was opened.
  let status: FileStatus
  /// The size of the content without encryption and padding.
  let size: UInt64
  private var cipher: BlockCipher?
  private var digest: DigestCheck

  /// The number of stored bytes that were read.
  private var offset: UInt64 = 0
  /// The number of bytes of the content that were returned.
  private var returned: UInt64 = 0
  private var buffer: [UInt8] = []
  private var position = 0
  /// A small stored content, read for its padding; empty once it was decrypted.
  private var ahead: [UInt8] = []

  /// The number of bytes that are read and decrypted at once; whole blocks.
  private static let portion: UInt64 = 256 << 10
  /// The maximum size of a stored content that is read completely for its padding.
  private static let smallContent: UInt64 = 64 << 10
  /// The number of bytes at the start that show whether a content is a database; whole blocks.
  private static let headSize: UInt64 = 112

  /// Opens a plain content. Refuses one that has lost its end.
  init(
    _ file: consuming Descriptor, of record: MobileRecord, in contents: MobileSyncContents,
    digest: consuming DigestCheck
  ) throws(PayloadFault) {
    let status = try Self.status(of: file)
    if status.size < record.file.size {
      let head = try Self.bytes(of: file, from: 0, to: min(status.size, Self.headSize))
      try contents.requireWhole(record, size: status.size, head: head)
    }
    size = status.size
    self.status = status
    self.file = file
    self.digest = digest
  }

  /// Opens an encrypted content. Determines its size from the padding, which is in its last block,
  /// and refuses one that has lost its end.
  ///
  /// Apple's programs always pad; other writers do not. A content counts as not padded if its
  /// stored size is the recorded one or, without valid padding, less than a block larger.
  init(
    _ file: consuming Descriptor, key: ClassKeys.Key, of record: MobileRecord,
    in contents: MobileSyncContents, digest: consuming DigestCheck
  ) throws(PayloadFault) {
    let recordedSize = record.file.size
    let status = try Self.status(of: file)
    let stored = status.size
    guard stored % UInt64(BlockCipher.blockSize) == 0 else {
      throw PayloadFault(reason: "its size of \(stored) bytes is not a whole number of blocks")
    }
    // Two blocks are enough for the padding, but most contents are small, and another call would
    // cost more.
    let start = stored <= Self.smallContent ? 0 : stored - 2 * UInt64(BlockCipher.blockSize)
    let end = try Self.bytes(of: file, from: start, to: stored)
    let plainSize: UInt64
    var isPadded = false
    if stored == recordedSize {
      plainSize = stored
    } else if let padding = Self.padding(atEndOf: end, key) {
      plainSize = stored - UInt64(padding)
      isPadded = true
    } else if recordedSize < stored, stored - recordedSize < UInt64(BlockCipher.blockSize) {
      plainSize = recordedSize
    } else {
      throw PayloadFault(reason: "its end is damaged, or its key is another one")
    }
    if plainSize < recordedSize {
      let head = try Self.bytes(of: file, from: 0, to: min(stored, Self.headSize))
      try contents.requireWhole(
        record, size: plainSize, head: Self.decrypted(head, key, limit: plainSize),
        isPadded: isPadded)
    }
    size = plainSize
    cipher = BlockCipher(.decrypt, key: key.bytes)
    if start == 0 { ahead = end }
    self.status = status
    self.file = file
    self.digest = digest
  }

  /// The size of the stored content in bytes.
  private var storedSize: UInt64 { status.size }

  private static func status(of file: borrowing Descriptor) throws(PayloadFault) -> FileStatus {
    let status: FileStatus
    do throws(SystemError) { status = try file.status() } catch {
      throw PayloadFault(reason: error.reason, cause: error)
    }
    guard status.kind == .file else { throw PayloadFault(reason: "its content is not a file") }
    return status
  }

  /// Returns the stored bytes between two offsets.
  private static func bytes(
    of file: borrowing Descriptor, from start: UInt64, to end: UInt64
  ) throws(PayloadFault) -> [UInt8] {
    let bytes: [UInt8]
    do throws(SystemError) {
      bytes = try file.read(count: Int(end - start), at: start)
    } catch { throw PayloadFault(reason: error.reason, cause: error) }
    guard bytes.count == Int(end - start) else { throw .shorter }
    return bytes
  }

  /// Returns the first bytes of a content, without padding.
  private static func decrypted(
    _ stored: [UInt8], _ key: ClassKeys.Key, limit: UInt64
  ) -> [UInt8] {
    var plain: [UInt8] = []
    var cipher = BlockCipher(.decrypt, key: key.bytes)
    cipher.process(stored.span, appendingTo: &plain)
    return Array(plain.prefix(Int(min(limit, headSize))))
  }

  /// Returns the number of bytes of padding in the last of the stored blocks; nil if there is no
  /// valid padding.
  private static func padding(atEndOf stored: [UInt8], _ key: ClassKeys.Key) -> Int? {
    let size = BlockCipher.blockSize
    guard stored.count >= size else { return nil }
    // The block before the last one is its initialization vector.
    let before = stored.dropLast(size).suffix(size)
    let vector = before.isEmpty ? [UInt8](repeating: 0, count: size) : Array(before)
    var cipher = BlockCipher(.decrypt, key: key.bytes, vector: vector)
    var last: [UInt8] = []
    cipher.process(stored.span.extracting((stored.count - size)...), appendingTo: &last)
    return BlockPadding.count(atEndOf: last.span)
  }

  /// Reads the next bytes and returns their number; 0 at the end, where the digest is compared.
  mutating func read(
    into target: UnsafeMutableRawBufferPointer
  ) throws(PayloadFault) -> Int {
    if position == buffer.count {
      var bytes: [UInt8] = []
      swap(&bytes, &buffer)
      bytes.removeAll(keepingCapacity: true)
      position = 0
      try append(to: &bytes)
      swap(&bytes, &buffer)
    }
    let count = min(target.count, buffer.count - position)
    if count == 0 { return 0 }
    let from = position
    buffer.withUnsafeBytes { source in
      target.copyMemory(from: UnsafeRawBufferPointer(rebasing: source[from..<(from + count)]))
    }
    position += count
    return count
  }

  /// Reads a content of which nothing was read before.
  mutating func readAll(appendingTo target: inout [UInt8]) throws(PayloadFault) {
    while try append(to: &target) > 0 {}
  }

  /// Appends the next bytes, without the copy that `read(into:)` makes, and returns their number:
  /// at most 256 KiB, 0 at the end. Must not be mixed with `read(into:)`.
  @discardableResult
  mutating func append(to target: inout [UInt8]) throws(PayloadFault) -> Int {
    let start = target.count
    let count = try appendStored(to: &target)
    offset += UInt64(count)
    digest.update(stored: target.span.extracting(start...))
    target.withUnsafeMutableBytes { all in
      cipher?.process(UnsafeMutableRawBufferPointer(rebasing: all[start...]))
    }
    if returned + UInt64(count) > size {
      target.removeLast(Int(returned + UInt64(count) - size))
    }
    digest.update(plain: target.span.extracting(start...))
    returned += UInt64(target.count - start)
    if offset == storedSize, !digest.isRight() {
      throw PayloadFault(reason: "its content does not have the SHA-1 that the manifest records")
    }
    return target.count - start
  }

  /// Appends the next stored bytes.
  private mutating func appendStored(to target: inout [UInt8]) throws(PayloadFault) -> Int {
    guard ahead.isEmpty else {
      defer { ahead = [] }
      target += ahead
      return ahead.count
    }
    let (start, count) = (target.count, Int(min(Self.portion, storedSize - offset)))
    do throws(SystemError) {
      try file.read(count: count, at: offset, appendingTo: &target)
    } catch { throw PayloadFault(reason: error.reason, cause: error) }
    guard target.count - start == count else { throw .shorter }
    return count
  }
}

/// The check of a content against the SHA-1 in the manifest.
///
/// Manifest.db has the digest of the stored content. For Manifest.mbdb, no source documents whether
/// it is that of the stored or of the decrypted content, so either is accepted.
struct DigestCheck: ~Copyable {
  private let expected: [UInt8]?
  private var stored: MessageDigest?
  private var plain: MessageDigest?
  private var isDone = false

  /// Creates a check; without a digest nothing is compared.
  init(_ expected: [UInt8]?, acceptsPlain: Bool) {
    self.expected = expected
    guard expected != nil else { return }
    stored = MessageDigest(.sha1)
    if acceptsPlain { plain = MessageDigest(.sha1) }
  }

  mutating func update(stored bytes: Span<UInt8>) { stored?.update(bytes) }
  mutating func update(plain bytes: Span<UInt8>) { plain?.update(bytes) }

  /// Whether the content has the digest. Called once, after the last byte.
  mutating func isRight() -> Bool {
    guard let expected, !isDone else { return true }
    isDone = true
    if let digest = stored.take()?.finish(), digest == expected { return true }
    if let digest = plain.take()?.finish(), digest == expected { return true }
    return false
  }
}

/// The reason why a content cannot be read, as a clause without its subject.
struct PayloadFault: Error, Hashable, Sendable {
  let reason: String
  var cause: SystemError?

  /// The file became shorter while it was read.
  static let shorter = PayloadFault(reason: "it became shorter while it was read")
}

internal import Codecs
internal import Synchronization
internal import SystemIO

/// A file of records, which any thread can read and append.
///
/// Records are read, not mapped: another process could change mapped bytes after their check, and a
/// failing disk could end the program.
final class RecordFile: Sendable {
  let descriptor: Descriptor
  private let tail: Mutex<Tail>

  private struct Tail {
    /// The offset of the next record, including buffered bytes.
    var end: UInt64
    var buffer: [UInt8] = []
    /// The first failure. Nothing is written after it.
    var failure: SystemError?
  }

  private static let bufferSize = 1 << 20

  /// Takes an open file whose records end at `end`; bytes after that are overwritten.
  init(_ descriptor: consuming Descriptor, end: UInt64) {
    self.descriptor = descriptor
    tail = Mutex(Tail(end: end))
  }

  /// The size of the file in bytes, including appended records.
  var end: UInt64 { tail.withLock { $0.end } }

  /// Returns the bytes of a flushed record, or nil if they do not match the checksum.
  func read(_ pointer: RecordPointer) -> [UInt8]? {
    pointer.bytes(in: descriptor)
  }

  /// Appends a record; returns nil if it is too long or an earlier one could not be written.
  func append(_ bytes: [UInt8]) -> RecordPointer? {
    guard bytes.count <= RecordPointer.limit else { return nil }
    let pointer = RecordPointer(of: bytes, at: 0)
    return appendPlain(bytes).map { pointer.moved(to: $0) }
  }

  /// Appends bytes that are not a record by themselves; returns their offset, or nil on failure.
  func appendPlain(_ bytes: [UInt8]) -> UInt64? {
    tail.withLock { tail in
      guard tail.failure == nil else { return nil }
      let offset = tail.end
      tail.buffer += bytes
      tail.end += UInt64(bytes.count)
      if tail.buffer.count >= Self.bufferSize { write(&tail) }
      return tail.failure == nil ? offset : nil
    }
  }

  /// Writes the buffered bytes.
  func flush() throws(SystemError) {
    let failure = tail.withLock { tail in
      write(&tail)
      return tail.failure
    }
    if let failure { throw failure }
  }

  private func write(_ tail: inout Tail) {
    guard tail.failure == nil, !tail.buffer.isEmpty else { return }
    do throws(SystemError) {
      try descriptor.write(tail.buffer, at: tail.end - UInt64(tail.buffer.count))
      tail.buffer.removeAll(keepingCapacity: true)
    } catch {
      tail.failure = error
    }
  }
}

/// The location of a record in a state file, with the checksum of its bytes.
///
/// Only the pointer to a record holds its checksum. So a lost or overwritten record is detected
/// like a damaged one.
struct RecordPointer: Hashable, Sendable {
  let offset: UInt64
  let length: UInt32
  /// The first eight bytes of the BLAKE2b-256 hash.
  let sum: UInt64

  /// The size of a pointer in a file, in bytes.
  static let size = 20
  /// The maximum size of a record in bytes.
  static let limit = 16 << 20

  init(offset: UInt64, length: UInt32, sum: UInt64) {
    self.offset = offset
    self.length = length
    self.sum = sum
  }

  init(of bytes: [UInt8], at offset: UInt64) {
    self.init(
      offset: offset, length: UInt32(bytes.count), sum: Blake2b.hash(bytes).leadingWord)
  }

  /// The pointer to a record that could not be written: no record has that checksum.
  static let nowhere = RecordPointer(offset: 0, length: 0, sum: 0)

  /// Reads a pointer at an offset, at which there must be enough bytes.
  init(_ bytes: Span<UInt8>, at start: Int) {
    offset = LittleEndian.integer(bytes, at: start)
    length = LittleEndian.integer(bytes, at: start + 8)
    sum = LittleEndian.integer(bytes, at: start + 12)
  }

  func append(to bytes: inout [UInt8]) {
    LittleEndian.append(offset, to: &bytes)
    LittleEndian.append(length, to: &bytes)
    LittleEndian.append(sum, to: &bytes)
  }
}

extension RecordPointer {
  /// Returns the same record at another offset.
  func moved(to offset: UInt64) -> RecordPointer {
    RecordPointer(offset: offset, length: length, sum: sum)
  }

  /// Returns the bytes of the record in a file, or nil if they do not match the checksum.
  func bytes(in file: borrowing Descriptor) -> [UInt8]? {
    guard length <= Self.limit, offset <= UInt64(Int64.max) - UInt64(Self.limit),
      let bytes = try? file.read(count: Int(length), at: offset), bytes.count == Int(length),
      Blake2b.hash(bytes).leadingWord == sum
    else { return nil }
    return bytes
  }
}

internal import Codecs
internal import Synchronization
internal import SystemIO

/// A file of records: read at their places by any thread, appended to by any thread.
///
/// Records are read, not mapped: a check of bytes that others may change, or that a failing disk
/// takes away, would be worth nothing, or end the program.
final class RecordFile: Sendable {
  let descriptor: Descriptor
  private let tail: Mutex<Tail>

  private struct Tail {
    /// Where the next record comes, in the file or behind what is buffered.
    var end: UInt64
    var buffer: [UInt8] = []
    /// The first failure; nothing is written behind it.
    var failure: SystemError?
  }

  private static let bufferSize = 1 << 20

  /// Takes an open file whose records end at `end`; what comes behind is written over.
  init(_ descriptor: consuming Descriptor, end: UInt64) {
    self.descriptor = descriptor
    tail = Mutex(Tail(end: end))
  }

  /// How many bytes the file has with all that is appended.
  var end: UInt64 { tail.withLock { $0.end } }

  /// The bytes of a record that was flushed; nothing when they are not what they were.
  func read(_ place: RecordPointer) -> [UInt8]? {
    place.bytes(in: descriptor)
  }

  /// Appends a record; nothing when it is too long or an earlier one could not be written.
  func append(_ bytes: [UInt8]) -> RecordPointer? {
    guard bytes.count <= RecordPointer.limit else { return nil }
    let place = RecordPointer(of: bytes, at: 0)
    return appendPlain(bytes).map { place.moved(to: $0) }
  }

  /// Appends bytes that are no record by themselves; gives where.
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

  /// Writes what is buffered.
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

extension RecordPointer {
  /// The same record at another offset.
  func moved(to offset: UInt64) -> RecordPointer {
    RecordPointer(offset: offset, length: length, sum: sum)
  }

  /// The bytes of the record in a file; nothing when they are not what they were.
  func bytes(in file: borrowing Descriptor) -> [UInt8]? {
    guard length <= Self.limit, offset <= UInt64(Int64.max) - UInt64(Self.limit),
      let bytes = try? file.read(count: Int(length), at: offset), bytes.count == Int(length),
      Blake2b.hash(bytes).leadingWord == sum
    else { return nil }
    return bytes
  }
}

internal import Codecs

/// Where a record lies in a state file, with the checksum that its bytes must have.
///
/// Only whoever points to a record knows its checksum, so that a record that was lost or written
/// over is found out as well as one whose bytes changed.
public struct RecordPointer: Hashable, Sendable {
  let offset: UInt64
  let length: UInt32
  /// The first eight bytes of the BLAKE2b-256.
  let sum: UInt64

  /// Bytes of a place in the file.
  static let size = 20
  /// Longer records are neither written nor read.
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

  /// The place of what could not be written: no record has that checksum.
  static let nowhere = RecordPointer(offset: 0, length: 0, sum: 0)

  /// Reads a place; its bytes must be there.
  init(_ bytes: Span<UInt8>, at place: Int) {
    offset = LittleEndian.integer(bytes, at: place)
    length = LittleEndian.integer(bytes, at: place + 8)
    sum = LittleEndian.integer(bytes, at: place + 12)
  }

  func append(to bytes: inout [UInt8]) {
    LittleEndian.append(offset, to: &bytes)
    LittleEndian.append(length, to: &bytes)
    LittleEndian.append(sum, to: &bytes)
  }
}

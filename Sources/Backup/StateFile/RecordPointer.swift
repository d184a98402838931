internal import Codecs

/// The location of a record in a state file, with the checksum of its bytes.
///
/// Only the pointer to a record holds its checksum. So a lost or overwritten record is detected
/// like a damaged one.
package struct RecordPointer: Hashable, Sendable {
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

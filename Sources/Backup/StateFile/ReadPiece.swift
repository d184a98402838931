internal import ArchiveStore
package import Codecs
internal import SystemIO

/// A piece of a large file that a run read (docs/state-file.md, "Interrupted runs").
package struct ReadPiece: Hashable, Sendable {
  /// The offset in the file.
  package let offset: UInt64
  /// The length in bytes, at least 1.
  package let length: Int
  /// The BLAKE2b-256 hash of the bytes.
  package let digest: Digest

  package init(offset: UInt64, length: Int, digest: Digest) {
    (self.offset, self.length, self.digest) = (offset, length, digest)
  }

  /// The offset of the end in the file.
  package var end: UInt64 { offset + UInt64(length) }

  /// The size of a piece in a batch, in bytes.
  static let size = 12 + Digest.byteCount

  func append(to bytes: inout [UInt8]) {
    LittleEndian.append(offset, to: &bytes)
    LittleEndian.append(UInt32(length), to: &bytes)
    bytes += digest.bytes
  }

  /// Returns the pieces of a batch, or nil unless they are in order and within a file of `size`
  /// bytes.
  static func read(_ bytes: Span<UInt8>, ofSize size: UInt64) -> [ReadPiece]? {
    guard bytes.count % Self.size == 0 else { return nil }
    var pieces: [ReadPiece] = []
    pieces.reserveCapacity(bytes.count / Self.size)
    var end: UInt64 = 0
    for start in stride(from: 0, to: bytes.count, by: Self.size) {
      let offset = LittleEndian.integer(bytes, at: start, as: UInt64.self)
      let length = LittleEndian.integer(bytes, at: start + 8, as: UInt32.self)
      // A piece is a blob, so it cannot be longer than one.
      guard 1...UInt32(FormatLimit.blob) ~= length, offset >= end, offset <= size,
        UInt64(length) <= size - offset,
        let digest = Digest(bytes.extracting((start + 12)..<(start + Self.size)))
      else { return nil }
      pieces.append(ReadPiece(offset: offset, length: Int(length), digest: digest))
      end = offset + UInt64(length)
    }
    return pieces
  }
}

/// The version of a file whose pieces were read, stored before them in a batch: its inode, its
/// size, and its modification and change times.
struct ReadFile: Equatable {
  static let size = 40
  let bytes: [UInt8]

  init(_ status: FileStatus) {
    var bytes: [UInt8] = []
    Self.append(status, to: &bytes)
    self.bytes = bytes
  }

  /// Appends the fields that identify a version of a file, as in an entry of the state.
  static func append(_ status: FileStatus, to bytes: inout [UInt8]) {
    LittleEndian.append(status.identity.inode, to: &bytes)
    LittleEndian.append(status.size, to: &bytes)
    LittleEndian.append(status.modified.seconds, to: &bytes)
    LittleEndian.append(status.changed.seconds, to: &bytes)
    LittleEndian.append(status.modified.nanoseconds, to: &bytes)
    LittleEndian.append(status.changed.nanoseconds, to: &bytes)
  }

  /// Reads the bytes that follow the key of a batch.
  init(_ batch: Span<UInt8>) {
    var bytes: [UInt8] = []
    bytes.append(batch)
    self.bytes = bytes
  }

  /// The size of the file in bytes.
  var fileSize: UInt64 { LittleEndian.integer(bytes.span, at: 8) }
}

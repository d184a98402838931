internal import ArchiveStore
public import Codecs
internal import SystemIO

/// A piece of a large file as a run read it (docs/state-file.md, "Interrupted runs").
public struct ReadPiece: Hashable, Sendable {
  /// Where in the file it begins.
  public let offset: UInt64
  /// Its bytes, at least 1.
  public let length: Int
  /// The BLAKE2b-256 of its bytes.
  public let digest: Digest

  public init(offset: UInt64, length: Int, digest: Digest) {
    (self.offset, self.length, self.digest) = (offset, length, digest)
  }

  /// The place in the file behind it.
  public var end: UInt64 { offset + UInt64(length) }

  /// Bytes that it takes in a batch.
  static let size = 12 + Digest.byteCount

  func append(to bytes: inout [UInt8]) {
    LittleEndian.append(offset, to: &bytes)
    LittleEndian.append(UInt32(length), to: &bytes)
    bytes += digest.bytes
  }

  /// The pieces of a batch, each behind the one before and within a file of so many bytes; nothing
  /// when that is not so.
  static func read(_ bytes: Span<UInt8>, ofSize size: UInt64) -> [ReadPiece]? {
    guard bytes.count % Self.size == 0 else { return nil }
    var pieces: [ReadPiece] = []
    pieces.reserveCapacity(bytes.count / Self.size)
    var end: UInt64 = 0
    for start in stride(from: 0, to: bytes.count, by: Self.size) {
      let offset = LittleEndian.integer(bytes, at: start, as: UInt64.self)
      let length = LittleEndian.integer(bytes, at: start + 8, as: UInt32.self)
      // A piece is a blob: no longer one is stored.
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

/// What a file was when its pieces were read, as it lies before them in a batch: its inode, its size,
/// and when its content and its metadata were changed last.
struct ReadFile: Equatable {
  static let size = 40
  let bytes: [UInt8]

  init(_ status: FileStatus) {
    var bytes: [UInt8] = []
    Self.append(status, to: &bytes)
    self.bytes = bytes
  }

  /// Appends what tells whether a file is as it was, as it also lies in an entry of the state.
  static func append(_ status: FileStatus, to bytes: inout [UInt8]) {
    LittleEndian.append(status.identity.inode, to: &bytes)
    LittleEndian.append(status.size, to: &bytes)
    LittleEndian.append(status.modified.seconds, to: &bytes)
    LittleEndian.append(status.changed.seconds, to: &bytes)
    LittleEndian.append(status.modified.nanoseconds, to: &bytes)
    LittleEndian.append(status.changed.nanoseconds, to: &bytes)
  }

  /// Takes the bytes that a batch has behind its key.
  init(_ batch: Span<UInt8>) {
    var bytes: [UInt8] = []
    bytes.append(batch)
    self.bytes = bytes
  }

  /// The size of the file.
  var fileSize: UInt64 { LittleEndian.integer(bytes.span, at: 8) }
}

internal import Codecs

/// The location of one blob: an entry of a pack's contents and of an index, 48 bytes in both
/// (docs/repository-format.md, "Blob entry").
struct BlobRecord: Hashable, Sendable, BitwiseCopyable {
  var digest: Digest
  var kind: BlobKind
  /// The pack's number in the index's table; 0 in a pack's own contents.
  var pack: UInt32
  var frame: UInt16
  /// The offset of the first byte in the frame's decoded bytes.
  var offset: UInt32
  var length: UInt32

  /// The size of an entry in bytes.
  static let size = 48

  var id: BlobID { BlobID(kind: kind, digest: digest) }

  /// Appends the entry: hash 32, pack 4, frame 2, kind 1, flags 1, offset 4, length 4.
  func encode(into bytes: inout [UInt8]) {
    digest.append(to: &bytes)
    bytes.append(littleEndian: UInt64(pack) | UInt64(frame) << 32 | UInt64(kind.rawValue) << 48)
    bytes.append(littleEndian: UInt64(offset) | UInt64(length) << 32)
  }

  /// Reads the entry at an offset that has at least 48 bytes. Returns nil if the kind, flags or
  /// length violate the format.
  init?(_ bytes: RawSpan, at start: Int) {
    guard let kind = BlobKind(rawValue: bytes.byte(at: start + 38)),
      bytes.byte(at: start + 39) == 0
    else { return nil }
    digest = Digest(bytes, at: start)
    self.kind = kind
    pack = bytes.integer(at: start + 32, as: UInt32.self)
    frame = bytes.integer(at: start + 36, as: UInt16.self)
    offset = bytes.integer(at: start + 40, as: UInt32.self)
    length = bytes.integer(at: start + 44, as: UInt32.self)
    guard length > 0, length <= FormatLimit.blob else { return nil }
  }

  init(id: BlobID, pack: UInt32 = 0, frame: UInt16 = 0, offset: UInt32, length: UInt32) {
    digest = id.digest
    kind = id.kind
    self.pack = pack
    self.frame = frame
    self.offset = offset
    self.length = length
  }

  /// Whether the blob lies after another blob of the same pack.
  func follows(_ other: BlobRecord) -> Bool {
    frame == other.frame
      ? UInt64(offset) >= UInt64(other.offset) + UInt64(other.length) : frame > other.frame
  }

  /// Whether the entry precedes another in an index.
  func isIndexed(before other: BlobRecord) -> Bool {
    if kind != other.kind { return kind < other.kind }
    return digest == other.digest ? pack < other.pack : digest < other.digest
  }

  /// The range of the blob in the frame.
  var range: Range<Int> { Int(offset)..<(Int(offset) + Int(length)) }

  /// Whether the blob lies within a frame of `plain` bytes.
  func fits(in plain: UInt32) -> Bool { UInt64(offset) + UInt64(length) <= UInt64(plain) }
}

/// The location of one frame in its pack.
public struct FrameLocation: Hashable, Sendable {
  /// The offset of the first byte in the pack.
  public let offset: UInt64
  /// The stored size in bytes.
  public let stored: UInt32
  /// The decoded size in bytes.
  public let plain: UInt32

  /// Creates a location.
  public init(offset: UInt64, stored: UInt32, plain: UInt32) {
    self.offset = offset
    self.stored = stored
    self.plain = plain
  }

  /// The range of the frame in the pack. One from a damaged index may be anywhere.
  var range: Range<UInt64> { offset..<max(offset, offset &+ UInt64(stored)) }
}

// Integers in the tables of the format are little-endian and unaligned.

extension [UInt8] {
  /// Appends an integer in little-endian byte order.
  mutating func append<Value: FixedWidthInteger>(littleEndian value: Value) {
    Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
  }
}

extension RawSpan {
  /// Returns the integer at an offset whose bounds the caller has checked.
  @inline(__always)
  func integer<Value: FixedWidthInteger & BitwiseCopyable>(at offset: Int, as: Value.Type) -> Value
  {
    Value(littleEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: Value.self))
  }

  @inline(__always)
  func byte(at offset: Int) -> UInt8 { unsafeLoad(fromByteOffset: offset, as: UInt8.self) }
}

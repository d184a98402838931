/// The table of a file's zstd frames, in a skippable frame at its end (zstd's seekable format
/// 0.1.0, contrib/seekable_format in its source).
///
/// ```
/// 0x184D2A5E  size  { compressed size, content size [, checksum] } …  count  flags  0x8F92EAB1
/// ```
/// Four bytes each, little-endian. The flags are one byte, whose highest bit indicates checksums.
/// `zstd -d` skips the frame.
public struct SeekTable: Sendable, Hashable {
  /// The frames in order.
  public var frames: [Frame]
  /// Whether the table contains a checksum for each frame.
  public var hasChecksums: Bool

  /// Creates a table.
  public init(frames: [Frame] = [], hasChecksums: Bool = false) {
    self.frames = frames
    self.hasChecksums = hasChecksums
  }

  /// A frame of the file.
  public struct Frame: Sendable, Hashable {
    /// The stored size of the frame in bytes.
    public var storedSize: UInt32
    /// The size of the content in bytes; 0 for a skippable frame.
    public var contentSize: UInt32
    /// The low half of the content's XXH64, as at the end of the frame; 0 without checksums.
    public var checksum: UInt32

    /// Creates an entry.
    public init(storedSize: UInt32, contentSize: UInt32, checksum: UInt32 = 0) {
      self.storedSize = storedSize
      self.contentSize = contentSize
      self.checksum = checksum
    }
  }
}

// MARK: - Coding

extension SeekTable {
  /// The magic number at the beginning of the skippable frame.
  public static let frameMagic: UInt32 = 0x184D_2A5E
  /// The magic number at the end of the table.
  public static let footerMagic: UInt32 = 0x8F92_EAB1
  /// The default limit of frames for readers.
  public static let maximumFrames = 1 << 20
  /// The size of the footer, which a reader needs first from the end of a file.
  public static let footerSize = 9

  private static let headerSize = 8
  private static let checksumFlag: UInt8 = 0x80
  private static let reservedFlags: UInt8 = 0x7C

  /// The encoded size of the table in bytes.
  public var encodedSize: Int {
    Self.size(count: frames.count, hasChecksums: hasChecksums)
  }

  private static func size(count: Int, hasChecksums: Bool) -> Int {
    headerSize + count * (hasChecksums ? 12 : 8) + footerSize
  }

  /// Appends the table as a skippable frame. There must be at most 2^27 frames, which no real file
  /// exceeds.
  public func encode(to buffer: inout [UInt8]) {
    buffer.reserveCapacity(buffer.count + encodedSize)
    LittleEndian.append(Self.frameMagic, to: &buffer)
    LittleEndian.append(UInt32(encodedSize - Self.headerSize), to: &buffer)
    for frame in frames {
      LittleEndian.append(frame.storedSize, to: &buffer)
      LittleEndian.append(frame.contentSize, to: &buffer)
      if hasChecksums { LittleEndian.append(frame.checksum, to: &buffer) }
    }
    LittleEndian.append(UInt32(frames.count), to: &buffer)
    buffer.append(hasChecksums ? Self.checksumFlag : 0)
    LittleEndian.append(Self.footerMagic, to: &buffer)
  }

  /// Returns the table as a skippable frame.
  public func encoded() -> [UInt8] {
    var buffer: [UInt8] = []
    encode(to: &buffer)
    return buffer
  }

  /// Returns the size of the table at the end of a file from the file's last bytes (nine or more).
  public static func encodedSize(
    inTail tail: Span<UInt8>, maximumFrames: Int = maximumFrames
  ) throws(CodecError) -> Int {
    guard tail.count >= footerSize else {
      throw CodecError(
        .truncated, in: .seekTable, reason: "it is shorter than the footer of a table")
    }
    let footer = tail.count - footerSize
    guard LittleEndian.word32(tail, at: footer + 5) == footerMagic else {
      throw CodecError(.malformed, in: .seekTable, reason: "the file does not end with a table")
    }
    let flags = tail[footer + 4]
    guard flags & reservedFlags == 0 else {
      throw CodecError(.unsupported, in: .seekTable, reason: "it has flags of a newer format")
    }
    let count = Int(LittleEndian.word32(tail, at: footer))
    guard count <= maximumFrames else {
      throw CodecError(
        .limit, in: .seekTable,
        reason: "it claims \(count) frames, more than the limit of \(maximumFrames)")
    }
    return size(count: count, hasChecksums: flags & checksumFlag != 0)
  }

  /// Reads the table from the last bytes of a file, which must contain all of it.
  ///
  /// Call `encodedSize(inTail:)` first to get the number of bytes required.
  public init(
    tail: Span<UInt8>, maximumFrames: Int = maximumFrames
  ) throws(CodecError) {
    let size = try Self.encodedSize(inTail: tail, maximumFrames: maximumFrames)
    guard tail.count >= size else {
      throw CodecError(
        .truncated, in: .seekTable,
        reason: "it has \(size) bytes, of which only \(tail.count) are available")
    }
    let start = tail.count - size
    guard LittleEndian.word32(tail, at: start) == Self.frameMagic,
      Int(LittleEndian.word32(tail, at: start + 4)) == size - Self.headerSize
    else {
      throw CodecError(.malformed, in: .seekTable, reason: "its header does not match its footer")
    }
    let hasChecksums = tail[tail.count - 5] & Self.checksumFlag != 0
    let width = hasChecksums ? 12 : 8
    let entries = stride(
      from: start + Self.headerSize, to: tail.count - Self.footerSize, by: width)
    var frames: [Frame] = []
    frames.reserveCapacity((size - Self.headerSize - Self.footerSize) / width)
    for offset in entries {
      frames.append(
        Frame(
          storedSize: LittleEndian.word32(tail, at: offset),
          contentSize: LittleEndian.word32(tail, at: offset + 4),
          checksum: hasChecksums ? LittleEndian.word32(tail, at: offset + 8) : 0))
    }
    self.init(frames: frames, hasChecksums: hasChecksums)
  }

  /// Reads a table that consists of exactly these bytes.
  public init(
    _ bytes: [UInt8], maximumFrames: Int = maximumFrames
  ) throws(CodecError) {
    try self.init(tail: bytes.span, maximumFrames: maximumFrames)
    guard encodedSize == bytes.count else {
      throw CodecError(.malformed, in: .seekTable, reason: "data precedes it", at: .offset(0))
    }
  }
}

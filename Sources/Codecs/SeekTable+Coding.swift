extension SeekTable {
  /// The number that begins the skippable frame.
  public static let frameMagic: UInt32 = 0x184D_2A5E
  /// The number that ends the table.
  public static let footerMagic: UInt32 = 0x8F92_EAB1
  /// The most frames that a reader accepts unless it is told otherwise.
  public static let maximumFrames = 1 << 20
  /// How many bytes the footer has: what a reader needs first of a file's end.
  public static let footerSize = 9

  private static let headerSize = 8
  private static let checksumFlag: UInt8 = 0x80
  private static let reservedFlags: UInt8 = 0x7C

  /// Bytes of the whole table as it is stored.
  public var encodedSize: Int {
    Self.size(count: frames.count, hasChecksums: hasChecksums)
  }

  private static func size(count: Int, hasChecksums: Bool) -> Int {
    headerSize + count * (hasChecksums ? 12 : 8) + footerSize
  }

  /// Appends the table as a skippable frame. There must be at most 2^27 frames, which a file has
  /// only beyond any size.
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

  /// The table as a skippable frame.
  public func encoded() -> [UInt8] {
    var buffer: [UInt8] = []
    encode(to: &buffer)
    return buffer
  }

  /// How many bytes at a file's end are the table, as the file's last bytes (nine or more) say.
  public static func encodedSize(
    inTail tail: Span<UInt8>, maximumFrames: Int = maximumFrames
  ) throws(CodecError) -> Int {
    guard tail.count >= footerSize else {
      throw CodecError(.truncated, .seekTable, "it is shorter than a table's end")
    }
    let footer = tail.count - footerSize
    guard LittleEndian.word32(tail, at: footer + 5) == footerMagic else {
      throw CodecError(.malformed, .seekTable, "the file does not end with a table")
    }
    let flags = tail[footer + 4]
    guard flags & reservedFlags == 0 else {
      throw CodecError(.unsupported, .seekTable, "it has flags of a newer format")
    }
    let count = Int(LittleEndian.word32(tail, at: footer))
    guard count <= maximumFrames else {
      throw CodecError(
        .limit, .seekTable, "it claims \(count) frames, at most \(maximumFrames) may be")
    }
    return size(count: count, hasChecksums: flags & checksumFlag != 0)
  }

  /// Reads the table from the last bytes of a file, which must hold all of it; more may be before.
  ///
  /// Ask `encodedSize(inTail:)` first how many bytes that takes.
  public init(
    tail: Span<UInt8>, maximumFrames: Int = maximumFrames
  ) throws(CodecError) {
    let size = try Self.encodedSize(inTail: tail, maximumFrames: maximumFrames)
    guard tail.count >= size else {
      throw CodecError(
        .truncated, .seekTable, "it has \(size) bytes, of which only \(tail.count) are there")
    }
    let start = tail.count - size
    guard LittleEndian.word32(tail, at: start) == Self.frameMagic,
      Int(LittleEndian.word32(tail, at: start + 4)) == size - Self.headerSize
    else {
      throw CodecError(.malformed, .seekTable, "its begin does not match its end")
    }
    let hasChecksums = tail[tail.count - 5] & Self.checksumFlag != 0
    let width = hasChecksums ? 12 : 8
    let entries = stride(
      from: start + Self.headerSize, to: tail.count - Self.footerSize, by: width)
    var frames: [Frame] = []
    frames.reserveCapacity((size - Self.headerSize - Self.footerSize) / width)
    for place in entries {
      frames.append(
        Frame(
          storedSize: LittleEndian.word32(tail, at: place),
          contentSize: LittleEndian.word32(tail, at: place + 4),
          checksum: hasChecksums ? LittleEndian.word32(tail, at: place + 8) : 0))
    }
    self.init(frames: frames, hasChecksums: hasChecksums)
  }

  /// Reads a table of which these are all bytes.
  public init(
    _ bytes: [UInt8], maximumFrames: Int = maximumFrames
  ) throws(CodecError) {
    try self.init(tail: bytes.span, maximumFrames: maximumFrames)
    guard encodedSize == bytes.count else {
      throw CodecError(.malformed, .seekTable, "something stands before it", at: .offset(0))
    }
  }
}

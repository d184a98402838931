/// The table of a file's zstd frames, in a skippable frame at its end (zstd's seekable format
/// 0.1.0, contrib/seekable_format in its source).
///
/// ```
/// 0x184D2A5E  size  { compressed size, content size [, checksum] } …  count  flags  0x8F92EAB1
/// ```
/// Four bytes each, little-endian; the flags are one byte, whose highest bit says that there are
/// checksums. `zstd -d` passes over it.
public struct SeekTable: Sendable, Hashable {
  /// The frames in their order.
  public var frames: [Frame]
  /// Whether each frame's checksum is in the table.
  public var hasChecksums: Bool

  /// Makes a table.
  public init(frames: [Frame] = [], hasChecksums: Bool = false) {
    self.frames = frames
    self.hasChecksums = hasChecksums
  }

  /// One frame of the file.
  public struct Frame: Sendable, Hashable {
    /// Bytes of the frame as it is stored.
    public var storedSize: UInt32
    /// Bytes of its content; none for a skippable frame.
    public var contentSize: UInt32
    /// The low half of the content's XXH64, as the frame's own end has it; 0 without checksums.
    public var checksum: UInt32

    /// Makes an entry.
    public init(storedSize: UInt32, contentSize: UInt32, checksum: UInt32 = 0) {
      self.storedSize = storedSize
      self.contentSize = contentSize
      self.checksum = checksum
    }
  }

  /// Where a frame lies.
  public struct Location: Sendable, Hashable {
    /// Where the frame begins in the file, and how many bytes it has there.
    public let stored: Range<Int>
    /// Where its content begins in the file's whole content, and how many bytes it has.
    public let content: Range<Int>
  }

  /// The frames' places, in their order, when the first begins at 0.
  public var places: [Location] {
    var stored = 0
    var content = 0
    return frames.map { frame in
      let place = Location(
        stored: stored..<(stored + Int(frame.storedSize)),
        content: content..<(content + Int(frame.contentSize)))
      stored = place.stored.upperBound
      content = place.content.upperBound
      return place
    }
  }

  /// Bytes of all frames as they are stored, which is where the table begins in the file.
  public var storedSize: Int { frames.reduce(0) { $0 + Int($1.storedSize) } }

  /// Bytes of the content of all frames.
  public var contentSize: Int { frames.reduce(0) { $0 + Int($1.contentSize) } }
}

/// The table of a file's zstd frames, in a skippable frame at its end (zstd's seekable format
/// 0.1.0, contrib/seekable_format in its source).
///
/// ```
/// 0x184D2A5E  size  { compressed size, content size [, checksum] } …  count  flags  0x8F92EAB1
/// ```
/// Four bytes each, little-endian. The flags are one byte, whose highest bit indicates checksums.
/// `zstd -d` skips the frame.
package struct SeekTable: Sendable, Hashable {
  /// The frames in order.
  package var frames: [Frame]
  /// Whether the table contains a checksum for each frame.
  package var hasChecksums: Bool

  /// Creates a table.
  package init(frames: [Frame] = [], hasChecksums: Bool = false) {
    self.frames = frames
    self.hasChecksums = hasChecksums
  }

  /// A frame of the file.
  package struct Frame: Sendable, Hashable {
    /// The stored size of the frame in bytes.
    package var storedSize: UInt32
    /// The size of the content in bytes; 0 for a skippable frame.
    package var contentSize: UInt32
    /// The low half of the content's XXH64, as at the end of the frame; 0 without checksums.
    package var checksum: UInt32

    /// Creates an entry.
    package init(storedSize: UInt32, contentSize: UInt32, checksum: UInt32 = 0) {
      self.storedSize = storedSize
      self.contentSize = contentSize
      self.checksum = checksum
    }
  }

  /// The location of a frame.
  package struct Location: Sendable, Hashable {
    /// The range of the frame in the file.
    package let stored: Range<Int>
    /// The range of its content in the content of the file.
    package let content: Range<Int>
  }

  /// The locations of the frames, in order. The first begins at 0.
  package var places: [Location] {
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

  /// The stored size of all frames in bytes, which is the offset of the table in the file.
  package var storedSize: Int { frames.reduce(0) { $0 + Int($1.storedSize) } }

  /// The size of the content of all frames in bytes.
  package var contentSize: Int { frames.reduce(0) { $0 + Int($1.contentSize) } }
}

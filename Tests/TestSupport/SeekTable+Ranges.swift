package import Codecs

extension SeekTable {
  /// The location of a frame.
  package struct FrameRanges: Sendable, Hashable {
    /// The range of the frame in the file.
    package let stored: Range<Int>
    /// The range of its content in the content of the file.
    package let content: Range<Int>
  }

  /// The locations of the frames, in order. The first begins at 0.
  package var frameRanges: [FrameRanges] {
    var stored = 0
    var content = 0
    return frames.map { frame in
      let ranges = FrameRanges(
        stored: stored..<(stored + Int(frame.storedSize)),
        content: content..<(content + Int(frame.contentSize)))
      stored = ranges.stored.upperBound
      content = ranges.content.upperBound
      return ranges
    }
  }
}

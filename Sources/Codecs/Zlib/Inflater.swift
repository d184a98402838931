internal import CZlib

/// Decompresses one zlib stream (RFC 1950: deflate with an Adler-32 checksum), in portions of any
/// size.
///
/// The caller provides the room for each portion, so a stream that expands a thousandfold takes no
/// more memory than another: 40 KB for the state. The checksum is verified at the end of the
/// stream; until then the bytes are not authentic.
package struct Inflater: ~Copyable {
  private let stream: ZlibStream
  /// Whether the end of the stream was reached and its checksum is right.
  package private(set) var isFinished = false
  /// The number of compressed bytes consumed.
  package private(set) var consumed: UInt64 = 0

  /// Creates a decompressor.
  package init() throws(CodecError) { stream = try ZlibStream(deflatingAt: nil) }

  /// Decompresses from `input` into `output`, until one of them is used up or the stream ends.
  /// Returns the number of bytes consumed and of those written. Do not use the value after an
  /// error.
  ///
  /// - Throws: `malformed` for damaged data, with its offset in the stream.
  package mutating func inflate(
    _ input: Span<UInt8>, into output: UnsafeMutableRawBufferPointer
  ) throws(CodecError) -> (consumed: Int, produced: Int) {
    if isFinished { return (0, 0) }
    let step = unsafe stream.step(input, into: output, flush: Z_NO_FLUSH)
    consumed += UInt64(step.consumed)
    switch step.status {
    case Z_STREAM_END: isFinished = true
    // No progress: the input or the output is empty.
    case Z_OK, Z_BUF_ERROR: break
    case Z_MEM_ERROR: throw CodecError(.library, in: .zlib, reason: "not enough memory")
    case Z_NEED_DICT:
      throw CodecError(.unsupported, in: .zlib, reason: "it needs a dictionary", at: position)
    default: throw CodecError(.malformed, in: .zlib, reason: stream.message, at: position)
    }
    return (step.consumed, step.produced)
  }

  private var position: CodecError.Position { .offset(Int(clamping: consumed)) }
}

internal import CZlib

/// Compresses one zlib stream (RFC 1950), in portions of any size.
package struct Deflater: ~Copyable {
  private let stream: ZlibStream

  /// Creates a compressor with a level from 1 (fast) to 9 (small).
  package init(level: Int = 6) throws(CodecError) {
    guard (1...9).contains(level) else {
      throw CodecError(.unrepresentable, in: .zlib, reason: "invalid level \(level)")
    }
    stream = try ZlibStream(deflatingAt: Int32(level))
  }

  /// Compresses bytes and appends the complete output to a buffer.
  package mutating func deflate(
    _ input: Span<UInt8>, appendingTo buffer: inout [UInt8]
  ) throws(CodecError) {
    var done = 0
    while done < input.count {
      done += try run(input.extracting(done..<input.count), Z_NO_FLUSH, appendingTo: &buffer)
        .consumed
    }
  }

  /// Appends the rest of the stream, with its checksum, to a buffer. Do not use the value
  /// afterwards.
  package mutating func finish(appendingTo buffer: inout [UInt8]) throws(CodecError) {
    let nothing: [UInt8] = []
    while try run(nothing.span, Z_FINISH, appendingTo: &buffer).status != Z_STREAM_END {}
  }

  private func run(
    _ input: Span<UInt8>, _ flush: Int32, appendingTo buffer: inout [UInt8]
  ) throws(CodecError) -> ZlibStream.Step {
    let start = buffer.count
    buffer.append(contentsOf: repeatElement(0, count: Self.room))
    let step = unsafe buffer.withUnsafeMutableBytes { bytes in
      let room = unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[start...])
      return unsafe stream.step(input, into: room, flush: flush)
    }
    buffer.removeLast(Self.room - step.produced)
    guard step.status == Z_OK || step.status == Z_STREAM_END else {
      throw CodecError(.library, in: .zlib, reason: stream.message)
    }
    return step
  }

  /// The number of bytes of room for each step.
  private static let room = 32 << 10
}

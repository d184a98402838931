internal import CZlib

/// The state of a zlib stream (RFC 1950) or gzip member (RFC 1952), at a fixed address: zlib keeps
/// pointers to it.
@safe struct ZlibStream: ~Copyable {
  private let stream: UnsafeMutablePointer<z_stream>
  private let isInflating: Bool

  /// Begins to inflate, or to deflate with a level from 1 (fast) to 9 (small).
  ///
  /// - Parameter isGzip: whether to inflate a gzip member.
  init(deflatingAt level: Int32?, isGzip: Bool = false) throws(CodecError) {
    isInflating = level == nil
    unsafe stream = .allocate(capacity: 1)
    unsafe stream.initialize(to: z_stream())
    let size = unsafe Int32(MemoryLayout<z_stream>.size)
    let status =
      if let level {
        unsafe deflateInit_(stream, level, ZLIB_VERSION, size)
      } else {
        // zlib adds 16 to the size of the window, 2^15 bytes, for gzip.
        unsafe inflateInit2_(stream, isGzip ? 15 + 16 : 15, ZLIB_VERSION, size)
      }
    guard status == Z_OK else {
      unsafe stream.deinitialize(count: 1)
      unsafe stream.deallocate()
      throw CodecError(.library, in: .zlib, reason: "not enough memory for zlib")
    }
  }

  deinit {
    _ = isInflating ? unsafe inflateEnd(stream) : unsafe deflateEnd(stream)
    unsafe stream.deinitialize(count: 1)
    unsafe stream.deallocate()
  }

  /// Begins to inflate another stream of the same kind.
  func restart() { _ = unsafe inflateReset(stream) }

  /// The result of one step.
  struct Step {
    /// The bytes of the input that were consumed.
    let consumed: Int
    /// The bytes that were written to the output.
    let produced: Int
    /// zlib's status.
    let status: Int32
  }

  /// Processes a part of the input into a part of the output, at most 1 GiB each.
  ///
  /// - Parameter flush: zlib's `Z_NO_FLUSH` or `Z_FINISH`.
  func step(
    _ input: Span<UInt8>, into output: UnsafeMutableRawBufferPointer, flush: Int32
  ) -> Step {
    // zlib counts in 32 bits.
    let given = min(input.count, 1 << 30)
    let room = min(output.count, 1 << 30)
    return unsafe input.withUnsafeBufferPointer { source in
      unsafe stream.pointee.next_in = UnsafeMutablePointer(mutating: source.baseAddress)
      unsafe stream.pointee.avail_in = UInt32(given)
      unsafe stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
      unsafe stream.pointee.avail_out = UInt32(room)
      let status =
        isInflating ? unsafe inflate(stream, flush) : unsafe deflate(stream, flush)
      return unsafe Step(
        consumed: given - Int(stream.pointee.avail_in),
        produced: room - Int(stream.pointee.avail_out), status: status)
    }
  }

  /// zlib's message about the last failure.
  var message: String {
    unsafe stream.pointee.msg.map { unsafe String(cString: $0) } ?? "zlib failed without a reason"
  }
}

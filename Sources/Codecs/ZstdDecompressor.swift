internal import CZstd

/// Decodes independent zstd frames, one for each call.
///
/// Memory is reserved only after the frame's claimed content size was compared with the caller's
/// limit. Refused: a frame without content size or checksum, a skippable frame, one that needs a
/// dictionary, anything behind the frame. A decompressor keeps about 100 KB between calls; each
/// thread needs its own.
@safe public struct ZstdDecompressor: ~Copyable {
  private let context: OpaquePointer

  /// Makes a decompressor.
  ///
  /// - Parameter passesChecksumOver: Whether frames are decoded without a look at their checksum, for
  ///   callers who hold what they take of them against hashes of their own: it costs up to 0.2 ns a
  ///   byte, and refuses what is whole in a frame for what is not. Each frame must have one all the
  ///   same. A library that does not know how to looks at it.
  public init(passesChecksumOver: Bool = false) throws(CodecError) {
    guard let context = unsafe ZSTD_createDCtx() else {
      throw CodecError(.library, .zstd, "no memory for the decompressor")
    }
    unsafe self.context = context
    // ZSTD_d_forceIgnoreChecksum by the name that it has for programs that link dynamically.
    if passesChecksumOver { unsafe ZSTD_DCtx_setParameter(context, ZSTD_d_experimentalParam3, 1) }
  }

  deinit { unsafe ZSTD_freeDCtx(context) }

  /// Appends the content of one whole frame, at most `limit` bytes, to a buffer and returns how
  /// many bytes it has. The buffer's bytes are as before when this fails.
  @discardableResult
  public mutating func decompress(
    _ frame: Span<UInt8>, limit: Int, appendingTo buffer: inout [UInt8]
  ) throws(CodecError) -> Int {
    let header = try ZstdFrame(frame)
    guard header.contentSize <= limit else {
      throw CodecError(
        .limit, .zstd, "it claims \(header.contentSize) bytes of content, at most \(limit) may be")
    }
    let context = unsafe context
    let decoded = try unsafe frame.withUnsafeBytes {
      (source: UnsafeRawBufferPointer) throws(CodecError) in
      try buffer.append(addingCapacity: header.contentSize) {
        (output: inout OutputSpan<UInt8>) throws(CodecError) in
        try unsafe output.withUnsafeMutableBufferPointer {
          (target: UnsafeMutableBufferPointer<UInt8>, count: inout Int) throws(CodecError) in
          let result = unsafe ZSTD_decompressDCtx(
            context, target.baseAddress, header.contentSize, source.baseAddress, source.count)
          guard ZSTD_isError(result) == 0, result == header.contentSize else {
            throw Self.failure(result)
          }
          count = result
        }
      }
      return header.contentSize
    }
    return decoded
  }

  /// The content of one whole frame, at most `limit` bytes.
  public mutating func decompress(
    _ frame: [UInt8], limit: Int
  ) throws(CodecError) -> [UInt8] {
    var content: [UInt8] = []
    try decompress(frame.span, limit: limit, appendingTo: &content)
    return content
  }

  private static func failure(_ result: Int) -> CodecError {
    guard ZSTD_isError(result) != 0 else {
      return CodecError(.malformed, .zstd, "its content is shorter than it claims")
    }
    return switch ZSTD_getErrorCode(result) {
    case ZSTD_error_memory_allocation: CodecError(.library, .zstd, "no memory")
    case ZSTD_error_checksum_wrong:
      CodecError(.malformed, .zstd, "the content does not match its checksum")
    case ZSTD_error_dictionary_wrong, ZSTD_error_dictionary_corrupted:
      CodecError(.unsupported, .zstd, "it needs a dictionary")
    default: CodecError(.malformed, .zstd, unsafe String(cString: ZSTD_getErrorName(result)))
    }
  }
}

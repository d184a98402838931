internal import CZstd

/// Decompresses independent zstd frames, one for each call.
///
/// Memory is allocated only after the frame's content size has been checked against the caller's
/// limit. Refused: a frame without content size or checksum, a skippable frame, one that requires a
/// dictionary, and data after the frame. A decompressor keeps about 100 KB between calls. Each
/// thread needs its own.
@safe public struct ZstdDecompressor: ~Copyable {
  private let context: OpaquePointer

  /// Creates a decompressor.
  ///
  /// - Parameter ignoresChecksum: whether checksums are ignored, for callers that check the
  ///   content against hashes of their own. Verifying them costs up to 0.2 ns a byte and rejects a
  ///   whole frame for one damaged part. Each frame must have a checksum nevertheless. A library
  ///   without this option verifies it.
  public init(ignoresChecksum: Bool = false) throws(CodecError) {
    guard let context = unsafe ZSTD_createDCtx() else {
      throw CodecError(.library, in: .zstd, reason: "not enough memory for the decompressor")
    }
    unsafe self.context = context
    // The name of ZSTD_d_forceIgnoreChecksum for dynamically linked programs.
    if ignoresChecksum { unsafe ZSTD_DCtx_setParameter(context, ZSTD_d_experimentalParam3, 1) }
  }

  deinit { unsafe ZSTD_freeDCtx(context) }

  /// Appends the content of one whole frame, at most `limit` bytes, to a buffer and returns its
  /// size. The buffer is unchanged on failure.
  @discardableResult
  public mutating func decompress(
    _ frame: Span<UInt8>, limit: Int, appendingTo buffer: inout [UInt8]
  ) throws(CodecError) -> Int {
    let header = try ZstdFrame(frame)
    guard header.contentSize <= limit else {
      throw CodecError(
        .limit, in: .zstd,
        reason: "it claims \(header.contentSize) bytes of content, more than the limit of \(limit)")
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

  /// Returns the content of one whole frame, at most `limit` bytes.
  public mutating func decompress(
    _ frame: [UInt8], limit: Int
  ) throws(CodecError) -> [UInt8] {
    var content: [UInt8] = []
    try decompress(frame.span, limit: limit, appendingTo: &content)
    return content
  }

  private static func failure(_ result: Int) -> CodecError {
    guard ZSTD_isError(result) != 0 else {
      return CodecError(.malformed, in: .zstd, reason: "its content is shorter than it claims")
    }
    return switch ZSTD_getErrorCode(result) {
    case ZSTD_error_memory_allocation: CodecError(.library, in: .zstd, reason: "not enough memory")
    case ZSTD_error_checksum_wrong:
      CodecError(.malformed, in: .zstd, reason: "the content does not match its checksum")
    case ZSTD_error_dictionary_wrong, ZSTD_error_dictionary_corrupted:
      CodecError(.unsupported, in: .zstd, reason: "it needs a dictionary")
    default:
      CodecError(.malformed, in: .zstd, reason: unsafe String(cString: ZSTD_getErrorName(result)))
    }
  }
}

/// The header and the checksum of one whole zstd frame (RFC 8878, section 3.1.1).
public struct ZstdFrame: Sendable, Hashable {
  /// The content size that the frame claims, in bytes.
  public let contentSize: Int
  /// The last four bytes: the low half of the content's XXH64, which a seek table may repeat.
  public let checksum: UInt32

  /// Parses one whole frame without decoding it.
  ///
  /// - Throws: if it is not a frame, has no content size or checksum, is truncated, or data follows
  ///   it.
  public init(_ frame: Span<UInt8>) throws(CodecError) {
    guard frame.count >= 6, Self.word(frame, at: 0) == ZSTD_MAGICNUMBER else {
      throw CodecError(
        .malformed, in: .zstd, reason: "it does not begin with a frame header", at: .offset(0))
    }
    let (size, stored) = unsafe frame.withUnsafeBytes { bytes in
      unsafe (
        ZSTD_getFrameContentSize(bytes.baseAddress, bytes.count),
        ZSTD_findFrameCompressedSize(bytes.baseAddress, bytes.count)
      )
    }
    guard size != UInt64.max - 1, ZSTD_isError(stored) == 0 else {
      throw CodecError(.truncated, in: .zstd, reason: "the frame is damaged or truncated")
    }
    guard size != UInt64.max else {
      throw CodecError(.unsupported, in: .zstd, reason: "it has no content size")
    }
    guard stored == frame.count else {
      throw CodecError(.malformed, in: .zstd, reason: "data follows the frame", at: .offset(stored))
    }
    guard frame[4] & 0x04 != 0 else {
      throw CodecError(.unsupported, in: .zstd, reason: "it has no checksum", at: .offset(4))
    }
    guard let contentSize = Int(exactly: size) else {
      throw CodecError(.limit, in: .zstd, reason: "it claims \(size) bytes of content")
    }
    self.contentSize = contentSize
    checksum = Self.word(frame, at: stored - 4)
  }

  private static func word(_ bytes: Span<UInt8>, at offset: Int) -> UInt32 {
    LittleEndian.word32(bytes, at: offset)
  }
}

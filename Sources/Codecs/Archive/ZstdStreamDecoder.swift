internal import CZstd

/// Decodes the frames of a zstd file (RFC 8878), each with its checksum if it has one.
///
/// Each call of libzstd gets the bytes that it asks for, of one block at most: an error would
/// discard what the call had decoded before it.
@safe final class ZstdStreamDecoder: StreamDecoder {
  private let context: OpaquePointer
  /// The number of bytes that libzstd asks for, and that of the start of a frame.
  private var wanted: Int
  private let first: Int
  private var isInFrame = true

  /// The first bytes of a frame.
  static let magic: [UInt8] = [0x28, 0xb5, 0x2f, 0xfd]

  let name = "zstd"

  init() throws(CodecError) {
    guard let context = unsafe ZSTD_createDCtx() else {
      throw CodecError(.library, in: .zstd, reason: "not enough memory for the decompressor")
    }
    unsafe self.context = context
    first = unsafe ZSTD_initDStream(context)
    wanted = first
  }

  deinit { unsafe ZSTD_freeDCtx(context) }

  func decode(
    _ input: Span<UInt8>, isLast: Bool, into output: UnsafeMutableRawBufferPointer
  ) -> DecodingStep {
    if !isInFrame, input.isEmpty {
      return DecodingStep(outcome: isLast ? .finished : .unfinished)
    }
    let isAtStart = !isInFrame
    isInFrame = true
    var step = DecodingStep()
    let result = unsafe input.extracting(first: wanted).withUnsafeBytes { bytes in
      var source = unsafe ZSTD_inBuffer(src: bytes.baseAddress, size: bytes.count, pos: 0)
      var target = unsafe ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
      let result = unsafe ZSTD_decompressStream(context, &target, &source)
      unsafe (step.consumed, step.produced) = (source.pos, target.pos)
      return result
    }
    if ZSTD_isError(result) != 0 {
      step.outcome = .failed(failure(result, isAtStart: isAtStart))
    } else if result == 0 {
      (isInFrame, wanted) = (false, first)
    } else {
      wanted = result
      if isLast, step.consumed == 0, step.produced == 0 {
        step.outcome = .failed(.truncated("its zstd data is truncated"))
      }
    }
    return step
  }

  private func failure(_ result: Int, isAtStart: Bool) -> DecodingFailure {
    switch ZSTD_getErrorCode(result) {
    case ZSTD_error_prefix_unknown where isAtStart: return .trailing(name)
    case ZSTD_error_memory_allocation:
      return DecodingFailure(
        error: CodecError(.library, in: .archive, reason: "not enough memory for zstd"))
    case ZSTD_error_frameParameter_windowTooLarge:
      return DecodingFailure(
        error: CodecError(
          .limit, in: .archive, reason: "its zstd data needs a window of more than 128 MiB"))
    case ZSTD_error_checksum_wrong:
      return .malformed("its zstd data does not match its checksum")
    default:
      let reason = unsafe String(cString: ZSTD_getErrorName(result))
      return .malformed("its zstd data is damaged (\(reason))")
    }
  }
}

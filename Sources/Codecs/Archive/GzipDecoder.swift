internal import CZlib

/// Decodes the members of a gzip file (RFC 1952), each with its CRC-32 and size, and accepts zeros
/// after the last one, as gzip does: tapes and block devices have them.
final class GzipDecoder: StreamDecoder {
  private let stream: ZlibStream
  private var part = Part.member

  private enum Part { case member, end, padding }

  /// The first bytes of each member: the identification and the method deflate.
  static let magic: [UInt8] = [0x1f, 0x8b, 8]

  let name = "gzip"

  init() throws(CodecError) { stream = try ZlibStream(deflatingAt: nil, isGzip: true) }

  func decode(
    _ input: Span<UInt8>, isLast: Bool, into output: UnsafeMutableRawBufferPointer
  ) -> DecodingStep {
    switch part {
    case .member: unsafe decodeMember(input, isLast: isLast, into: output)
    case .end: beginNext(input, isLast: isLast)
    case .padding: skipPadding(input, isLast: isLast)
    }
  }

  private func decodeMember(
    _ input: Span<UInt8>, isLast: Bool, into output: UnsafeMutableRawBufferPointer
  ) -> DecodingStep {
    let step = unsafe stream.step(input, into: output, flush: Z_NO_FLUSH)
    var result = DecodingStep(consumed: step.consumed, produced: step.produced)
    switch step.status {
    case Z_STREAM_END: part = .end
    case Z_OK, Z_BUF_ERROR:
      if isLast, step.consumed == 0, step.produced == 0 {
        result.outcome = .failed(
          .truncated("its gzip data is truncated, and the checksum at its end is missing"))
      }
    case Z_MEM_ERROR:
      result.outcome = .failed(
        DecodingFailure(
          error: CodecError(.library, in: .archive, reason: "not enough memory for zlib")))
    default:
      result.outcome = .failed(.malformed("its gzip data is damaged (\(stream.message))"))
    }
    return result
  }

  private func beginNext(_ input: Span<UInt8>, isLast: Bool) -> DecodingStep {
    if input.isEmpty { return DecodingStep(outcome: isLast ? .finished : .unfinished) }
    switch input[0] {
    case 0: part = .padding
    case Self.magic[0]:
      stream.restart()
      part = .member
    default: return DecodingStep(outcome: .failed(.trailing(name)))
    }
    return DecodingStep()
  }

  private func skipPadding(_ input: Span<UInt8>, isLast: Bool) -> DecodingStep {
    for index in input.indices where input[index] != 0 {
      return DecodingStep(consumed: index, outcome: .failed(.trailing(name)))
    }
    return DecodingStep(consumed: input.count, outcome: isLast ? .finished : .unfinished)
  }
}

internal import CZlib

/// Decodes the members of a gzip file (RFC 1952), each with its CRC-32 and size.
final class GzipDecoder: MemberDecoder {
  private let stream: ZlibStream

  /// The first bytes of each member: the identification and the method deflate.
  static let magic: [UInt8] = [0x1f, 0x8b, 8]

  let name = "gzip"

  var firstByte: UInt8 { Self.magic[0] }

  init() throws(CodecError) { stream = try ZlibStream(deflatingAt: nil, isGzip: true) }

  func restart() { stream.restart() }

  func decodeMember(
    _ input: Span<UInt8>, isLast: Bool, into output: UnsafeMutableRawBufferPointer
  ) -> MemberStep {
    let step = unsafe stream.step(input, into: output, flush: Z_NO_FLUSH)
    var result = MemberStep(consumed: step.consumed, produced: step.produced)
    switch step.status {
    case Z_STREAM_END: result.outcome = .finished
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
}

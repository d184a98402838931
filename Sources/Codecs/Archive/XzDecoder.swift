internal import CLzma

/// Decodes the streams of an xz file (The .xz File Format 1.2), each with the checks of its blocks,
/// if it has them, and of its index.
@safe final class XzDecoder: MemberDecoder {
  /// At an address of its own: liblzma keeps a pointer to it.
  private let stream: UnsafeMutablePointer<lzma_stream>

  /// The first bytes of each stream.
  static let magic: [UInt8] = [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0]

  /// The maximum memory in bytes, almost all of it a dictionary, which can be of 4 GiB. xz itself
  /// writes dictionaries of at most 1.5 GiB, and of 64 MiB if it is not told otherwise.
  private static let memoryLimit: UInt64 = 1 << 30

  let name = "xz"

  var firstByte: UInt8 { Self.magic[0] }

  init() throws(CodecError) {
    unsafe stream = .allocate(capacity: 1)
    // As LZMA_STREAM_INIT, a macro that Swift does not import.
    unsafe stream.initialize(to: lzma_stream())
    try restart()
  }

  deinit {
    unsafe lzma_end(stream)
    unsafe stream.deinitialize(count: 1)
    unsafe stream.deallocate()
  }

  /// liblzma frees what the last stream had, or uses it again.
  func restart() throws(CodecError) {
    guard unsafe lzma_stream_decoder(stream, Self.memoryLimit, 0) == LZMA_OK else {
      throw CodecError(.library, in: .archive, reason: "not enough memory for liblzma")
    }
  }

  func decodeMember(
    _ input: Span<UInt8>, isLast: Bool, into output: UnsafeMutableRawBufferPointer
  ) -> MemberStep {
    let status = unsafe input.withUnsafeBufferPointer { source in
      unsafe stream.pointee.next_in = source.baseAddress
      unsafe stream.pointee.avail_in = source.count
      unsafe stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
      unsafe stream.pointee.avail_out = output.count
      return unsafe lzma_code(stream, LZMA_RUN)
    }
    var step = unsafe MemberStep(
      consumed: input.count - stream.pointee.avail_in,
      produced: output.count - stream.pointee.avail_out)
    step.outcome = outcome(status, isStuck: isLast && step.consumed == 0 && step.produced == 0)
    return step
  }

  /// - Parameter isStuck: whether nothing was done, and nothing follows.
  private func outcome(_ status: lzma_ret, isStuck: Bool) -> MemberStep.Outcome {
    switch status {
    case LZMA_STREAM_END: .finished
    // No progress: the input or the output is empty.
    case LZMA_OK, LZMA_BUF_ERROR:
      isStuck ? .failed(.truncated("its xz data is truncated")) : .unfinished
    case LZMA_FORMAT_ERROR: .foreign
    case LZMA_MEM_ERROR:
      .failed(
        DecodingFailure(
          error: CodecError(.library, in: .archive, reason: "not enough memory for liblzma")))
    case LZMA_MEMLIMIT_ERROR:
      .failed(
        DecodingFailure(
          error: CodecError(
            .limit, in: .archive, reason: "its xz data needs a dictionary of more than 1 GiB")))
    case LZMA_OPTIONS_ERROR:
      .failed(
        DecodingFailure(
          error: CodecError(
            .unsupported, in: .archive, reason: "its xz data has options that liblzma lacks"),
          isSuspect: true))
    default: .failed(.malformed("its xz data is damaged, or does not match a checksum"))
    }
  }
}

internal import CBzip2

/// Decodes the streams of a bzip2 file, each with the CRC-32 of its blocks and of the whole.
///
/// libbz2 decodes a block of at most 900 kB as a whole, and reports its damage only after it.
@safe final class Bzip2Decoder: MemberDecoder {
  /// At a fixed address: libbz2 keeps a pointer to it.
  private let stream: UnsafeMutablePointer<bz_stream>
  /// Whether libbz2 has memory of the stream.
  private var isOpen = false

  let name = "bzip2"

  var firstByte: UInt8 { Self.magic[0] }

  /// The first bytes of each stream before the size of the blocks, from 1 to 9.
  private static let magic = Array("BZh".utf8)
  /// The bytes after the size: the mark of a block, and that of the end of an empty stream.
  private static let marks: [[UInt8]] = [
    [0x31, 0x41, 0x59, 0x26, 0x53, 0x59], [0x17, 0x72, 0x45, 0x38, 0x50, 0x90],
  ]

  /// Whether bytes are the start of a stream: a text may begin with the first of them.
  static func begins(_ start: [UInt8]) -> Bool {
    start.count >= 10 && start.starts(with: magic)
      && (UInt8(ascii: "1")...UInt8(ascii: "9")).contains(start[3])
      && marks.contains { start.dropFirst(4).starts(with: $0) }
  }

  init() throws(CodecError) {
    unsafe stream = .allocate(capacity: 1)
    unsafe stream.initialize(to: bz_stream())
    try restart()
  }

  deinit {
    close()
    unsafe stream.deinitialize(count: 1)
    unsafe stream.deallocate()
  }

  func restart() throws(CodecError) {
    close()
    unsafe stream.pointee = bz_stream()
    guard unsafe BZ2_bzDecompressInit(stream, 0, 0) == BZ_OK else {
      throw CodecError(.library, in: .archive, reason: "not enough memory for libbz2")
    }
    isOpen = true
  }

  private func close() {
    if isOpen { _ = unsafe BZ2_bzDecompressEnd(stream) }
    isOpen = false
  }

  func decodeMember(
    _ input: Span<UInt8>, isLast: Bool, into output: UnsafeMutableRawBufferPointer
  ) -> MemberStep {
    // libbz2 counts in 32 bits.
    let given = min(input.count, 1 << 30)
    let room = min(output.count, 1 << 30)
    let status = unsafe input.withUnsafeBytes { source in
      unsafe stream.pointee.next_in = UnsafeMutableRawPointer(mutating: source.baseAddress)?
        .assumingMemoryBound(to: CChar.self)
      unsafe stream.pointee.avail_in = UInt32(given)
      unsafe stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: CChar.self)
      unsafe stream.pointee.avail_out = UInt32(room)
      return unsafe BZ2_bzDecompress(stream)
    }
    var step = unsafe MemberStep(
      consumed: given - Int(stream.pointee.avail_in),
      produced: room - Int(stream.pointee.avail_out))
    step.outcome = outcome(status, isStuck: isLast && step.consumed == 0 && step.produced == 0)
    return step
  }

  /// - Parameter isStuck: whether no progress was made, and nothing follows.
  private func outcome(_ status: Int32, isStuck: Bool) -> MemberStep.Outcome {
    switch status {
    case BZ_STREAM_END: .finished
    case BZ_OK where isStuck: .failed(.truncated("its bzip2 data is truncated"))
    case BZ_OK: .unfinished
    case BZ_DATA_ERROR_MAGIC: .foreign
    case BZ_MEM_ERROR:
      .failed(
        DecodingFailure(
          error: CodecError(.library, in: .archive, reason: "not enough memory for libbz2")))
    default:
      .failed(
        .malformed("its bzip2 data is damaged, or does not match the checksum of a block"))
    }
  }
}

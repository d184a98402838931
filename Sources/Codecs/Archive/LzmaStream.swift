internal import CLzma

/// A decoder of liblzma.
@safe final class LzmaStream {
  /// The formats that it decodes.
  enum Format {
    /// LZMA data with a header of 13 bytes (the .lzma File Format 1.0, "LZMA_Alone"): the
    /// properties, the size of the dictionary, and that of the content, or all ones if an end
    /// marker follows.
    case alone
    /// A stream of an xz file (The .xz File Format 1.2).
    case xz
  }

  private let format: Format
  /// At a fixed address: liblzma keeps a pointer to it.
  private let stream: UnsafeMutablePointer<lzma_stream>

  /// The maximum memory in bytes, almost all of it for a dictionary, which can have 4 GiB. xz
  /// itself writes dictionaries of at most 1.5 GiB, and of at most 64 MiB by default.
  private static let memoryLimit: UInt64 = 1 << 30

  init(_ format: Format) throws(CodecError) {
    self.format = format
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

  /// Begins another stream. liblzma frees or reuses the memory of the last one.
  func restart() throws(CodecError) {
    let status =
      switch format {
      case .alone: unsafe lzma_alone_decoder(stream, Self.memoryLimit)
      case .xz: unsafe lzma_stream_decoder(stream, Self.memoryLimit, 0)
      }
    guard status == LZMA_OK else {
      throw CodecError(.library, in: .archive, reason: "not enough memory for liblzma")
    }
  }

  /// Decodes from `input` into `output`.
  ///
  /// - Parameters:
  ///   - isLast: whether nothing follows `input`.
  ///   - name: the name of the compression, for errors.
  func step(
    _ input: Span<UInt8>, isLast: Bool, into output: UnsafeMutableRawBufferPointer, name: String
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
    let isStuck = isLast && step.consumed == 0 && step.produced == 0
    step.outcome = outcome(status, isStuck: isStuck, name)
    return step
  }

  /// - Parameter isStuck: whether no progress was made, and nothing follows.
  private func outcome(
    _ status: lzma_ret, isStuck: Bool, _ name: String
  ) -> MemberStep.Outcome {
    switch status {
    case LZMA_STREAM_END: .finished
    // No progress: the input or the output is empty.
    case LZMA_OK, LZMA_BUF_ERROR:
      isStuck ? .failed(.truncated("its \(name) data is truncated")) : .unfinished
    case LZMA_MEM_ERROR:
      .failed(
        DecodingFailure(
          error: CodecError(.library, in: .archive, reason: "not enough memory for liblzma")))
    case LZMA_MEMLIMIT_ERROR:
      .failed(
        DecodingFailure(
          error: CodecError(
            .limit, in: .archive,
            reason: "its \(name) data needs a dictionary of more than 1 GiB")))
    case LZMA_FORMAT_ERROR where format == .xz: .foreign
    case LZMA_OPTIONS_ERROR where format == .xz:
      .failed(
        DecodingFailure(
          error: CodecError(
            .unsupported, in: .archive, reason: "its xz data has options that liblzma lacks"),
          isSuspect: true))
    default:
      .failed(
        .malformed(
          "its \(name) data is damaged" + (format == .xz ? ", or does not match a checksum" : "")))
    }
  }
}

/// Decodes an lzma file, the format before xz, which has no checksum.
final class LzmaDecoder: MemberDecoder {
  private let stream: LzmaStream

  /// The size of the header.
  static let headerSize = 13
  /// The properties that all programs write by default: lc 3, lp 0, pb 2.
  /// libarchive decodes the others.
  private static let properties: UInt8 = 0x5D

  let name = "lzma"

  var firstByte: UInt8 { Self.properties }

  init() throws(CodecError) { stream = try LzmaStream(.alone) }

  /// Whether a file with this start is an lzma file. The format has no signature: the dictionary is
  /// a power of two, or one and a half times that, of at least 64 KiB, and the content is below 256
  /// TiB. A tar cannot begin like this, because a NUL ends its first name.
  static func begins(_ start: [UInt8]) -> Bool {
    guard start.count >= headerSize, start[0] == properties else { return false }
    let dictionary = start[1..<5].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    let power = UInt64(1) << UInt64(UInt64.bitWidth - 1 - max(1, dictionary).leadingZeroBitCount)
    let isUsual = dictionary == power || dictionary == power + power / 2
    let size = start[5..<headerSize]
    return dictionary >= 1 << 16 && isUsual
      && (size.allSatisfy { $0 == 0xFF } || size.suffix(2).allSatisfy { $0 == 0 })
  }

  func restart() throws(CodecError) { try stream.restart() }

  func decodeMember(
    _ input: Span<UInt8>, isLast: Bool, into output: UnsafeMutableRawBufferPointer
  ) -> MemberStep {
    unsafe stream.step(input, isLast: isLast, into: output, name: name)
  }
}

/// A decoder of compressed data that verifies the checksums in it.
protocol StreamDecoder: AnyObject {
  /// The name of the compression in libarchive's words.
  var name: String { get }

  /// Decodes from `input` into `output`, until one of them is used up, the data ends, or it is
  /// damaged. Data before the damage is in the output.
  ///
  /// - Parameter isLast: whether nothing follows `input`.
  func decode(
    _ input: Span<UInt8>, isLast: Bool, into output: UnsafeMutableRawBufferPointer
  ) -> DecodingStep
}

/// The result of one step of a decoder.
struct DecodingStep {
  /// The bytes of the input that were consumed.
  var consumed = 0
  /// The bytes that were written to the output.
  var produced = 0
  var outcome = Outcome.unfinished

  enum Outcome {
    case unfinished, finished
    case failed(DecodingFailure)
  }
}

/// The damage of compressed data.
struct DecodingFailure {
  let error: CodecError
  /// Whether everything that was decoded may be wrong: damage shows only after it, at the latest by
  /// a checksum of the whole.
  var isSuspect = false

  static func malformed(_ reason: String) -> Self {
    Self(error: CodecError(.malformed, in: .archive, reason: reason), isSuspect: true)
  }

  static func truncated(_ reason: String) -> Self {
    Self(error: CodecError(.truncated, in: .archive, reason: reason))
  }

  /// Data that the decoder does not know follows the end.
  static func trailing(_ name: String) -> Self {
    Self(
      error: CodecError(
        .malformed, in: .archive, reason: "data that is not \(name) follows its end"))
  }
}

/// The plain bytes of a compressed archive.
///
/// libarchive does not verify the checksum of gzip, nor any that it has not reached at the end of
/// the archive in the data; it loses what it decoded before damage, and ignores what follows bzip2
/// data. Here everything that can be decoded is read, and then the bytes end: `failure` is the
/// reason.
final class DecodedInput: ArchiveInput {
  private let input: any ArchiveInput
  private let decoder: any StreamDecoder
  private var stored: [UInt8]
  private var position = 0
  private var end: Int
  private var isInputAtEnd = false
  private var outcome = DecodingStep.Outcome.unfinished
  /// The damage, after all bytes before it were read.
  private(set) var failure: DecodingFailure?
  /// The number of compressed bytes that were decoded.
  private(set) var consumedBytes: UInt64 = 0

  let size: UInt64? = nil

  private static let portion = 256 << 10

  /// Decodes an input whose first bytes, `start`, were read.
  private init(_ input: any ArchiveInput, after start: [UInt8], _ decoder: any StreamDecoder) {
    self.input = input
    self.decoder = decoder
    end = start.count
    stored = start + [UInt8](repeating: 0, count: Self.portion - start.count)
  }

  /// The name of the compression in libarchive's words.
  var name: String { decoder.name }

  func seek(to offset: UInt64) {}

  func read(into buffer: inout [UInt8]) -> Int {
    while case .unfinished = outcome {
      if position == end, !isInputAtEnd {
        let count = input.read(into: &stored)
        if count < 0 { return count }
        (position, end, isInputAtEnd) = (0, count, count == 0)
      }
      let step = decode(into: &buffer)
      position += step.consumed
      consumedBytes += UInt64(step.consumed)
      outcome = step.outcome
      if step.produced > 0 { return step.produced }
    }
    if case .failed(let failure) = outcome { self.failure = failure }
    return 0
  }

  private func decode(into buffer: inout [UInt8]) -> DecodingStep {
    unsafe buffer.withUnsafeMutableBytes { room in
      let bytes = stored
      let step = unsafe decoder.decode(
        bytes.span.extracting(position..<end), isLast: isInputAtEnd, into: room)
      return step
    }
  }
}

extension DecodedInput {
  /// Returns the plain bytes of an input at its start if it is compressed in a known way, otherwise
  /// an input with the same bytes.
  static func opening(
    _ input: any ArchiveInput
  ) throws(CodecError) -> (input: any ArchiveInput, decoded: DecodedInput?) {
    var start: [UInt8] = []
    while start.count < startSize {
      var buffer = [UInt8](repeating: 0, count: startSize - start.count)
      let count = input.read(into: &buffer)
      if count <= 0 { break }
      start += buffer.prefix(count)
    }
    if let decoder = try decoder(of: start) {
      let decoded = DecodedInput(input, after: start, decoder)
      return (decoded, decoded)
    }
    if input.size == nil { return (ResumedInput(input, after: start), nil) }
    input.seek(to: 0)
    return (input, nil)
  }

  /// The number of bytes by which the compressions are recognized.
  private static let startSize = LzmaDecoder.headerSize

  private static func decoder(of start: [UInt8]) throws(CodecError) -> (any StreamDecoder)? {
    if start.starts(with: GzipDecoder.magic) { return ConcatenatedDecoder(try GzipDecoder()) }
    if Bzip2Decoder.begins(start) { return ConcatenatedDecoder(try Bzip2Decoder()) }
    if start.starts(with: XzDecoder.magic) { return ConcatenatedDecoder(try XzDecoder()) }
    if LzipDecoder.begins(start) { return ConcatenatedDecoder(try LzipDecoder()) }
    if LzmaDecoder.begins(start) { return ConcatenatedDecoder(try LzmaDecoder()) }
    if start.starts(with: ZstdStreamDecoder.magic) { return try ZstdStreamDecoder() }
    return start.starts(with: LZ4Decoder.magic) ? LZ4Decoder() : nil
  }
}

/// A stream whose first bytes were read.
private final class ResumedInput: ArchiveInput {
  private let input: any ArchiveInput
  private var start: [UInt8]

  let size: UInt64? = nil

  init(_ input: any ArchiveInput, after start: [UInt8]) {
    (self.input, self.start) = (input, start)
  }

  func seek(to offset: UInt64) {}

  func read(into buffer: inout [UInt8]) -> Int {
    if start.isEmpty { return input.read(into: &buffer) }
    let count = min(start.count, buffer.count)
    buffer.replaceSubrange(..<count, with: start[..<count])
    start.removeFirst(count)
    return count
  }
}

internal import CLzma

/// Decodes the members of an lzip file (RFC draft-diaz-lzip, version 1), each with its CRC-32, and
/// the sizes of its content and of itself.
///
/// A member is a header of 6 bytes, LZMA data with an end marker, and a trailer of 20 bytes.
final class LzipDecoder: MemberDecoder {
  private let stream: LzmaStream
  private var part = Part.header
  /// The bytes of the header or the trailer so far.
  private var field: [UInt8] = []
  /// The checksum and the size of the decoded data, and the size of the LZMA data.
  private var sums = Sums()

  private enum Part { case header, data, end }

  private struct Sums: Equatable {
    var checksum: UInt32 = 0
    var size: UInt64 = 0
    var memberSize: UInt64 = 0
  }

  private static let signature = Array("LZIP".utf8)
  private static let headerSize = 6
  private static let endSize = 20

  let name = "lzip"

  var firstByte: UInt8 { Self.signature[0] }

  init() throws(CodecError) { stream = try LzmaStream(.alone) }

  /// Whether a file with this start is an lzip file: the signature, version 1, and a dictionary of
  /// 4 KiB to 512 MiB. A tar may begin with a name like the signature.
  static func begins(_ start: [UInt8]) -> Bool {
    start.count >= headerSize && start.starts(with: signature) && start[4] == 1
      && (12...29).contains(start[5] & 0x1F)
  }

  func restart() throws(CodecError) {
    (part, field, sums) = (.header, [], Sums())
    try stream.restart()
  }

  func decodeMember(
    _ input: Span<UInt8>, isLast: Bool, into output: UnsafeMutableRawBufferPointer
  ) -> MemberStep {
    switch part {
    case .header: collect(Self.headerSize, of: input, isLast: isLast) { beginData() }
    case .data: unsafe decode(input, isLast: isLast, into: output)
    case .end: collect(Self.endSize, of: input, isLast: isLast) { checkEnd() }
    }
  }

  /// Takes bytes until the field is complete, and then returns the result of `body` for it.
  private func collect(
    _ size: Int, of input: Span<UInt8>, isLast: Bool, _ body: () -> MemberStep.Outcome
  ) -> MemberStep {
    var step = MemberStep()
    while field.count < size, step.consumed < input.count {
      field.append(input[step.consumed])
      step.consumed += 1
    }
    if field.count == size {
      step.outcome = body()
      field = []
    } else if isLast, step.consumed == 0 {
      step.outcome = .failed(.truncated("its lzip data is truncated"))
    }
    return step
  }

  /// Gives the decoder the header that it expects: the properties of all lzip files, the size of
  /// the dictionary, and an unknown size of the content.
  private func beginData() -> MemberStep.Outcome {
    guard Self.begins(field) else { return .foreign }
    let power = UInt32(1) << UInt32(field[5] & 0x1F)
    let dictionary = power - power / 16 * UInt32(field[5] >> 5)
    let header =
      [0x5D] + (0..<4).map { UInt8(truncatingIfNeeded: dictionary >> UInt32(8 * $0)) }
      + [UInt8](repeating: 0xFF, count: 8)
    // liblzma accepts no byte without room for one, which the header does not need.
    var room: [UInt8] = [0]
    let step = unsafe room.withUnsafeMutableBytes {
      unsafe stream.step(header.span, isLast: false, into: $0, name: name)
    }
    if case .failed(let failure) = step.outcome { return .failed(failure) }
    part = .data
    return .unfinished
  }

  private func decode(
    _ input: Span<UInt8>, isLast: Bool, into output: UnsafeMutableRawBufferPointer
  ) -> MemberStep {
    var step = unsafe stream.step(input, isLast: isLast, into: output, name: name)
    sums.memberSize += UInt64(step.consumed)
    sums.size += UInt64(step.produced)
    sums.checksum = unsafe lzma_crc32(
      output.baseAddress?.assumingMemoryBound(to: UInt8.self), step.produced, sums.checksum)
    if case .finished = step.outcome { (part, step.outcome) = (.end, .unfinished) }
    return step
  }

  /// Compares the checksum and the sizes after the data.
  private func checkEnd() -> MemberStep.Outcome {
    func number(_ range: Range<Int>) -> UInt64 {
      field[range].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
    sums.memberSize += UInt64(Self.headerSize + Self.endSize)
    let found = Sums(
      checksum: UInt32(number(0..<4)), size: number(4..<12), memberSize: number(12..<20))
    return found == sums
      ? .finished : .failed(.malformed("its lzip data does not match its checksum"))
  }
}

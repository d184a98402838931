/// A decoder of one member of a file that may have several in sequence.
protocol MemberDecoder: AnyObject {
  /// The name of the compression in libarchive's words.
  var name: String { get }

  /// The first byte of each member.
  var firstByte: UInt8 { get }

  /// Decodes from `input` into `output`, as `StreamDecoder` does, up to the end of the member.
  func decodeMember(
    _ input: Span<UInt8>, isLast: Bool, into output: UnsafeMutableRawBufferPointer
  ) -> MemberStep

  /// Begins with another member.
  func restart() throws(CodecError)
}

/// The result of one step of a decoder of a member.
struct MemberStep {
  /// The bytes of the input that were consumed.
  var consumed = 0
  /// The bytes that were written to the output.
  var produced = 0
  var outcome = Outcome.unfinished

  enum Outcome {
    case unfinished, finished
    /// The data after a member is not another one. The start of the first was compared before.
    case foreign
    case failed(DecodingFailure)
  }
}

/// Decodes all members of a file, as the programs of these compressions do, and accepts zeros after
/// the last one, as on tapes and block devices.
final class ConcatenatedDecoder: StreamDecoder {
  private let member: any MemberDecoder
  private var part = Part.member

  private enum Part { case member, end, padding }

  init(_ member: any MemberDecoder) { self.member = member }

  var name: String { member.name }

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
    let step = unsafe member.decodeMember(input, isLast: isLast, into: output)
    var result = DecodingStep(consumed: step.consumed, produced: step.produced)
    switch step.outcome {
    case .unfinished: break
    case .finished: part = .end
    case .foreign: result.outcome = .failed(.trailing(name))
    case .failed(let failure): result.outcome = .failed(failure)
    }
    return result
  }

  private func beginNext(_ input: Span<UInt8>, isLast: Bool) -> DecodingStep {
    if input.isEmpty { return DecodingStep(outcome: isLast ? .finished : .unfinished) }
    switch input[0] {
    case 0: part = .padding
    case member.firstByte:
      do throws(CodecError) { try member.restart() } catch {
        return DecodingStep(outcome: .failed(DecodingFailure(error: error)))
      }
      part = .member
    default: return DecodingStep(outcome: .failed(.trailing(name)))
    }
    return DecodingStep()
  }

  private func skipPadding(_ input: Span<UInt8>, isLast: Bool) -> DecodingStep {
    for index in input.indices where input[index] != 0 {
      part = .end
      return DecodingStep(consumed: index)
    }
    return DecodingStep(consumed: input.count, outcome: isLast ? .finished : .unfinished)
  }
}

/// Decodes the streams of an xz file (The .xz File Format 1.2), each with the checks of its blocks,
/// if it has them, and of its index.
final class XzDecoder: MemberDecoder {
  private let stream: LzmaStream

  /// The first bytes of each stream.
  static let magic: [UInt8] = [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0]

  let name = "xz"

  var firstByte: UInt8 { Self.magic[0] }

  init() throws(CodecError) { stream = try LzmaStream(.xz) }

  func restart() throws(CodecError) { try stream.restart() }

  func decodeMember(
    _ input: Span<UInt8>, isLast: Bool, into output: UnsafeMutableRawBufferPointer
  ) -> MemberStep {
    unsafe stream.step(input, isLast: isLast, into: output, name: name)
  }
}

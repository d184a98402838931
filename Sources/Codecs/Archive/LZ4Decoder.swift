/// Decodes the frames of an LZ4 file with their checksums, of which libarchive verifies only some.
///
/// Source: lz4, doc/lz4_Frame_format.md.
final class LZ4Decoder: StreamDecoder {
  /// The part of the file that is read next, as a whole.
  private enum Part {
    case magic, skippedSize, skipped, descriptor, rest, blockSize
    case block(isPlain: Bool)
    case checksum
  }

  private var part = Part.magic
  /// The bytes of the part, of which `needed` are required.
  private var collected: [UInt8] = []
  private var needed = 4
  private var skippedCount = 0
  private var isFirst = true
  /// The flags of the frame.
  private var flags: UInt8 = 0
  private var block = LZ4Block(limit: 0)
  /// The number of bytes in `block` that were passed on.
  private var passed = 0
  private var hash = XXHash32()

  /// The first bytes of a frame.
  static let magic: [UInt8] = [0x04, 0x22, 0x4d, 0x18]

  let name = "lz4"

  private enum Flag {
    static let independent: UInt8 = 0x20
    static let blockChecksum: UInt8 = 0x10
    static let size: UInt8 = 8
    static let checksum: UInt8 = 4
    static let dictionary: UInt8 = 1
  }

  func decode(
    _ input: Span<UInt8>, isLast: Bool, into output: UnsafeMutableRawBufferPointer
  ) -> DecodingStep {
    if passed < block.end {
      let count = min(output.count, block.end - passed)
      unsafe output.copyBytes(from: block.plain[passed..<(passed + count)])
      passed += count
      return DecodingStep(produced: count)
    }
    if case .skipped = part { return skip(input, isLast: isLast) }
    var step = DecodingStep(consumed: min(needed - collected.count, input.count))
    for index in 0..<step.consumed { collected.append(input[index]) }
    if collected.count < needed {
      guard isLast, step.consumed == 0 else { return step }
      let isEnd = if case .magic = part { collected.isEmpty && !isFirst } else { false }
      step.outcome = isEnd ? .finished : .failed(.truncated("its lz4 data is truncated"))
      return step
    }
    let bytes = exchange(&collected, with: [])
    if let failure = take(bytes) { step.outcome = .failed(failure) }
    return step
  }

  private func skip(_ input: Span<UInt8>, isLast: Bool) -> DecodingStep {
    let count = min(skippedCount, input.count)
    skippedCount -= count
    if skippedCount == 0 {
      expect(.magic, 4)
    } else if isLast, count == 0 {
      return DecodingStep(outcome: .failed(.truncated("its lz4 data is truncated")))
    }
    return DecodingStep(consumed: count)
  }

  private func expect(_ part: Part, _ count: Int) { (self.part, needed) = (part, count) }

  /// Processes a part and chooses the next one.
  private func take(_ bytes: [UInt8]) -> DecodingFailure? {
    switch part {
    case .magic: return begin(LittleEndian.word32(bytes.span, at: 0))
    case .skippedSize:
      skippedCount = Int(LittleEndian.word32(bytes.span, at: 0))
      part = .skipped
    case .skipped: break
    case .descriptor:
      flags = bytes[0]
      // The descriptor is needed again for its checksum.
      collected = bytes
      expect(.rest, 3 + (flags & Flag.size != 0 ? 8 : 0) + (flags & Flag.dictionary != 0 ? 4 : 0))
    case .rest: return beginFrame(bytes)
    case .blockSize: return beginBlock(LittleEndian.word32(bytes.span, at: 0))
    case .block(let isPlain): return take(block: bytes, isPlain: isPlain)
    case .checksum:
      expect(.magic, 4)
      guard LittleEndian.word32(bytes.span, at: 0) == hash.value else {
        return .malformed("its lz4 data does not match its checksum")
      }
    }
    return nil
  }

  private func begin(_ magic: UInt32) -> DecodingFailure? {
    switch magic {
    case LittleEndian.word32(Self.magic.span, at: 0): expect(.descriptor, 2)
    case 0x184d_2a50...0x184d_2a5f: expect(.skippedSize, 4)
    default: return .trailing(name)
    }
    isFirst = false
    return nil
  }

  private func beginFrame(_ bytes: [UInt8]) -> DecodingFailure? {
    let descriptor = bytes.span.extracting(..<(bytes.count - 1))
    let code = Int(bytes[1] >> 4 & 7)
    guard flags & 0xc2 == 0x40, code >= 4,
      bytes[bytes.count - 1] == UInt8(truncatingIfNeeded: XXHash32.hash(descriptor) >> 8)
    else { return Self.known("the header of its lz4 data is damaged") }
    if flags & Flag.dictionary != 0 { return Self.known("its lz4 data needs a dictionary") }
    // 64 KiB, 256 KiB, 1 MiB or 4 MiB.
    block = LZ4Block(limit: 1 << (8 + 2 * code))
    (passed, hash) = (0, XXHash32())
    expect(.blockSize, 4)
    return nil
  }

  private func beginBlock(_ word: UInt32) -> DecodingFailure? {
    if word == 0 {
      if flags & Flag.checksum != 0 { expect(.checksum, 4) } else { expect(.magic, 4) }
      return nil
    }
    let size = Int(word & 0x7fff_ffff)
    guard size <= block.limit else { return .malformed("its lz4 data is damaged") }
    let checksum = flags & Flag.blockChecksum != 0 ? 4 : 0
    expect(.block(isPlain: word >> 31 != 0), size + checksum)
    return nil
  }

  private func take(block bytes: [UInt8], isPlain: Bool) -> DecodingFailure? {
    var size = bytes.count
    if flags & Flag.blockChecksum != 0 {
      size -= 4
      let found = XXHash32.hash(bytes.span.extracting(..<size))
      guard LittleEndian.word32(bytes.span, at: size) == found else {
        return Self.known("a block of its lz4 data does not match its checksum")
      }
    }
    let stored = bytes.span.extracting(..<size)
    block.begin(isLinked: flags & Flag.independent == 0)
    passed = block.start
    guard isPlain ? block.take(stored) : block.decode(stored) else {
      passed = block.end
      return .malformed("its lz4 data is damaged")
    }
    if flags & Flag.checksum != 0 {
      hash.update(block.plain.span.extracting(block.start..<block.end))
    }
    expect(.blockSize, 4)
    return nil
  }

  /// Returns the failure for damage that is found before decoding.
  private static func known(_ reason: String) -> DecodingFailure {
    DecodingFailure(error: CodecError(.malformed, in: .archive, reason: reason))
  }
}

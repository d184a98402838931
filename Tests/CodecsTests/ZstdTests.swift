import Codecs
import TestSupport
import Testing

struct ZstdTests {
  /// Returns text that compresses to about a third. It is the same in each run.
  static func text(_ count: Int) -> [UInt8] {
    var random = Seeded(UInt64(count))
    var bytes: [UInt8] = []
    while bytes.count < count {
      let word = random.next() % 5000
      bytes += Array("word\(word * word) ".utf8)
    }
    return Array(bytes.prefix(count))
  }

  @Test(arguments: [0, 1, 1000, 300_000, 4 << 20])
  func readsWhatItWrites(count: Int) throws {
    var compressor = try ZstdCompressor()
    var decompressor = try ZstdDecompressor()
    for content in [Self.text(count), [UInt8](repeating: 0, count: count)] {
      let frame = try compressor.compress(content)
      #expect(try ZstdFrame(frame.span).contentSize == content.count)
      #expect(try decompressor.decompress(frame, limit: count) == content)
      let foreign = try run(["zstd", "-dc"], input: frame)
      #expect(foreign.status == 0)
      #expect(foreign.output == content)
    }
  }

  @Test func appendsFramesThatTheProgramReadsAsOne() throws {
    var compressor = try ZstdCompressor(ZstdMethod(level: 1))
    var file: [UInt8] = [0x50, 0x2A, 0x4D, 0x18, 1, 0, 0, 0, 7]
    var whole: [UInt8] = []
    for piece in 1...5 {
      let content = Self.text(piece * 1000)
      let before = file.count
      let size = try compressor.compress(
        content.span, by: piece == 3 ? ZstdMethod(level: 19) : nil, appendingTo: &file)
      #expect(file.count == before + size)
      whole += content
    }
    let foreign = try run(["zstd", "-dc"], input: file)
    #expect(foreign.output == whole)
    #expect(foreign.errors == "")
    #expect(try run(["zstd", "-t", "-q"], input: file).status == 0)
  }

  @Test func frameIsIndependentOfPreviousFrames() throws {
    var compressor = try ZstdCompressor()
    let content = Self.text(100_000)
    let first = try compressor.compress(content)
    _ = try compressor.compress(Self.text(3 << 20), by: ZstdMethod(level: 9))
    #expect(try compressor.compress(content) == first)
    #expect(throws: CodecError.self) { try compressor.compress(content, by: ZstdMethod(level: 23)) }
    #expect(try compressor.compress(content) == first)
    #expect(try compressor.compress(content, by: ZstdMethod(level: 19)).count < first.count)
  }

  @Test func everyMethodMakesDifferentFrames() throws {
    let methods = [
      ZstdMethod(level: 2), ZstdMethod(level: 2, matcher: .wideFast),
      ZstdMethod(level: 2, matcher: .wideFull),
      ZstdMethod(level: 2, matcher: .wideFull, storesLiterals: true), ZstdMethod(level: -1),
    ]
    var decompressor = try ZstdDecompressor()
    var mixed = try ZstdCompressor()
    let content = Self.text(3 << 20)
    var frames: Set<[UInt8]> = []
    for method in methods {
      var alone = try ZstdCompressor(method)
      let frame = try alone.compress(content)
      #expect(try decompressor.decompress(frame, limit: content.count) == content)
      #expect(try mixed.compress(content, by: method) == frame, "\(method)")
      frames.insert(frame)
    }
    #expect(frames.count == methods.count)
  }

  /// Returns words from a small vocabulary, with noise between them.
  private static func values(_ count: Int, _ random: inout Seeded) -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < count {
      bytes += Array("INSERT INTO messages (author, body, image) VALUES ".utf8)
      bytes += random.bytes(80)
    }
    return Array(bytes.prefix(count))
  }

  @Test func storedLiteralsCostNothingInNoiseBetweenRepeats() throws {
    var random = Seeded(11)
    let content = Self.values(2 << 20, &random)
    var usual = try ZstdCompressor(ZstdMethod(level: 2, matcher: .wideFast))
    let stored = try usual.compress(
      content, by: ZstdMethod(level: 2, matcher: .wideFull, storesLiterals: true))
    let coded = try usual.compress(content)
    #expect(stored.count < coded.count + coded.count / 50)
    #expect(stored.count < content.count * 3 / 4)
  }

  @Test func refusesInvalidLevels() {
    let error = failure { () throws(CodecError) in try ZstdCompressor(ZstdMethod(level: 23)).method
    }
    #expect(error?.description == "cannot write zstd frame: invalid level 23")
  }

  @Test func refusesOversizedContentBeforeDecoding() throws {
    var compressor = try ZstdCompressor()
    var decompressor = try ZstdDecompressor()
    let frame = try compressor.compress([UInt8](repeating: 1, count: 1 << 20))
    var buffer: [UInt8] = [9]
    let error = failure { () throws(CodecError) in
      try decompressor.decompress(frame.span, limit: (1 << 20) - 1, appendingTo: &buffer)
    }
    #expect(error?.kind == .limit)
    #expect(buffer == [9])
    // A header that claims a content of 2^62 bytes, without content.
    let claim: [UInt8] =
      [0x28, 0xB5, 0x2F, 0xFD, 0xE4] + [0, 0, 0, 0, 0, 0, 0, 0x40] + [1, 0, 0, 1, 2, 3, 4]
    #expect(
      failure { () throws(CodecError) in try decompressor.decompress(claim, limit: 1 << 24) }?.kind
        == .limit)
  }

  @Test func refusesOtherFrames() throws {
    var compressor = try ZstdCompressor()
    var decompressor = try ZstdDecompressor()
    let content = Self.text(5000)
    let frame = try compressor.compress(content)
    func kind(_ frame: [UInt8]) -> CodecError.Kind? {
      failure { () throws(CodecError) in try decompressor.decompress(frame, limit: 1 << 24) }?.kind
    }
    #expect(kind([]) == .malformed)
    #expect(kind(Array("hello, world".utf8)) == .malformed)
    #expect(kind([0x5E, 0x2A, 0x4D, 0x18, 1, 0, 0, 0, 7]) == .malformed)
    #expect(kind(frame + [0]) == .malformed)
    #expect(kind(frame + frame) == .malformed)
    #expect(kind(Array(frame.dropLast())) == .truncated)
    #expect(kind(Array(frame.prefix(6))) == .truncated)
    #expect(kind(try run(["zstd", "-c"], input: content).output) == .unsupported)
    let plain = try run(["zstd", "-c", "--no-check", "--stream-size=5000"], input: content).output
    #expect(kind(plain) == .unsupported)
    var damaged = frame
    damaged[damaged.count - 1] ^= 1
    let error = failure { () throws(CodecError) in
      try decompressor.decompress(damaged, limit: 1 << 24)
    }
    #expect(error?.reason == "the content does not match its checksum")
    #expect(try decompressor.decompress(frame, limit: 5000) == content)
  }

  /// A caller that verifies the bytes itself can get them; other errors are still refused.
  @Test func ignoresAWrongChecksumOnRequest() throws {
    var compressor = try ZstdCompressor()
    var decompressor = try ZstdDecompressor(ignoresChecksum: true)
    let content = Self.text(50_000)
    let frame = try compressor.compress(content)
    for position in 1...4 {
      var damaged = frame
      damaged[damaged.count - position] ^= 0x10
      for frame in [damaged, frame] {
        #expect(try decompressor.decompress(frame, limit: content.count) == content)
      }
    }
    func kind(_ frame: [UInt8]) -> CodecError.Kind? {
      failure { () throws(CodecError) in try decompressor.decompress(frame, limit: 1 << 24) }?.kind
    }
    #expect(kind(Array(frame.dropLast())) == .truncated)
    #expect(kind(Array(frame.dropLast(4))) == .truncated)
    #expect(kind(frame + [0]) == .malformed)
    let bare = try run(["zstd", "-c", "--no-check", "--stream-size=50000"], input: content).output
    #expect(kind(bare) == .unsupported)
  }

  @Test(arguments: [UInt64(1), 2, 3])
  func damagedFramesNeverGiveOtherContent(seed: UInt64) throws {
    var random = Seeded(seed)
    var compressor = try ZstdCompressor()
    var decompressor = try ZstdDecompressor()
    let content = Self.text(3000)
    let frame = try compressor.compress(content)
    var refused = 0
    for _ in 0..<3_000 {
      let damaged = random.damage(frame)
      var buffer: [UInt8] = []
      do throws(CodecError) {
        try decompressor.decompress(damaged.span, limit: 1 << 20, appendingTo: &buffer)
        #expect(buffer == content, "seed \(seed)")
      } catch {
        refused += 1
        #expect(buffer.isEmpty, "seed \(seed)")
      }
    }
    #expect(refused > 2_500, "seed \(seed)")
  }

  @Test func choosesTheMethodForSmallerContent() throws {
    var probe = try CompressionProbe()
    var random = Seeded(4)
    func expect(
      _ answer: CompressionProbe.Answer, _ content: [UInt8], _ what: String, looks: Bool = true
    ) {
      let given = probe.bestMethod(content.span, looksForRepeats: looks)
      #expect(given == answer, "\(what), \(content.count) bytes")
    }
    for count in [4096, 20_000, 100_000, 1 << 20] {
      let noise = random.bytes(count)
      expect(.nothing, noise, "noise")
      expect(.all, Self.text(count), "text", looks: false)
      expect(.all, Array(Hex.encode(noise).utf8), "digits")
      let values = Self.values(count, &random)
      expect(.repeats, values, "values")
      expect(.all, values, "values", looks: false)
    }
    expect(.all, random.bytes(4095), "little")
    expect(.all, [], "nothing")
    expect(.all, random.bytes(1 << 20) + Self.text(1 << 20), "half", looks: false)
  }
}

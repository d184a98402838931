import Codecs
import Testing

@Suite struct ZstdTests {
  /// Text that compresses to about a third, always the same.
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
    var compressor = try ZstdCompressor(level: 1)
    var file: [UInt8] = [0x50, 0x2A, 0x4D, 0x18, 1, 0, 0, 0, 7]
    var whole: [UInt8] = []
    for piece in 1...5 {
      let content = Self.text(piece * 1000)
      let before = file.count
      let size = try compressor.compress(
        content.span, level: piece == 3 ? 19 : nil, appendingTo: &file)
      #expect(file.count == before + size)
      whole += content
    }
    let foreign = try run(["zstd", "-dc"], input: file)
    #expect(foreign.output == whole)
    #expect(foreign.errors == "")
    #expect(try run(["zstd", "-t", "-q"], input: file).status == 0)
  }

  @Test func givesTheSameFrameAfterAnyOther() throws {
    var compressor = try ZstdCompressor()
    let content = Self.text(100_000)
    let first = try compressor.compress(content)
    _ = try compressor.compress(Self.text(3 << 20), level: 9)
    #expect(try compressor.compress(content) == first)
    #expect(throws: CodecError.self) { try compressor.compress(content, level: 23) }
    #expect(try compressor.compress(content) == first)
    #expect(try compressor.compress(content, level: 19).count < first.count)
  }

  @Test func aMatcherStaysAtEachLevel() throws {
    var plain = try ZstdCompressor(level: 2)
    var wide = try ZstdCompressor(level: 2, matcher: .wideFast)
    var decompressor = try ZstdDecompressor()
    let content = Self.text(3 << 20)
    let first = try wide.compress(content)
    #expect(try decompressor.decompress(first, limit: content.count) == content)
    #expect(try first != plain.compress(content))
    _ = try wide.compress(content, level: -1)
    #expect(try wide.compress(content) == first)
  }

  @Test func refusesLevelsThatAreNone() {
    let error = failure { () throws(CodecError) in try ZstdCompressor(level: 23).level }
    #expect(error?.description == "cannot write zstd frame: there is no level 23")
  }

  @Test func refusesMoreThanTheLimitBeforeItDecodes() throws {
    var compressor = try ZstdCompressor()
    var decompressor = try ZstdDecompressor()
    let frame = try compressor.compress([UInt8](repeating: 1, count: 1 << 20))
    var buffer: [UInt8] = [9]
    let error = failure { () throws(CodecError) in
      try decompressor.decompress(frame.span, limit: (1 << 20) - 1, appendingTo: &buffer)
    }
    #expect(error?.kind == .limit)
    #expect(buffer == [9])
    // A header that claims 2^62 bytes, and nothing behind it.
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

  @Test(arguments: [UInt64(1), 2, 3])
  func neverGivesOtherContentForDamage(seed: UInt64) throws {
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

  @Test func tellsWhatDoesNotCompress() throws {
    var probe = try CompressionProbe()
    var random = Seeded(4)
    func expect(_ answer: Bool, _ content: [UInt8], _ what: String) {
      let given = probe.isIncompressible(content)
      #expect(given == answer, "\(what), \(content.count) bytes")
    }
    for count in [4096, 20_000, 100_000, 1 << 20] {
      let noise = random.bytes(count)
      expect(true, noise, "noise")
      expect(false, Self.text(count), "text")
      expect(false, [UInt8](repeating: 0, count: count), "zeros")
      expect(false, Array(Hex.encode(noise).utf8), "digits")
    }
    expect(false, random.bytes(4095), "little")
    expect(false, [], "nothing")
    expect(false, random.bytes(1 << 20) + Self.text(1 << 20), "half")
  }
}

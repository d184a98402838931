import Codecs
import TestSupport
import Testing

struct SeekTableTests {
  static let plain = SeekTable(frames: [
    .init(storedSize: 0x0102_0304, contentSize: 5), .init(storedSize: 6, contentSize: 0xFFFF_FFFF),
  ])
  static let summed = SeekTable(
    frames: [.init(storedSize: 1, contentSize: 2, checksum: 0xDEAD_BEEF)], hasChecksums: true)

  @Test func writesTheGivenBytes() {
    #expect(
      Hex.encode(Self.plain.encoded())
        == "5e2a4d18" + "19000000" + "04030201" + "05000000" + "06000000" + "ffffffff"
        + "02000000" + "00" + "b1ea928f")
    #expect(
      Hex.encode(Self.summed.encoded())
        == "5e2a4d18" + "15000000" + "01000000" + "02000000" + "efbeadde" + "01000000" + "80"
        + "b1ea928f")
    #expect(Hex.encode(SeekTable().encoded()) == "5e2a4d18" + "09000000" + "0000000000b1ea928f")
  }

  @Test func readsWhatItWrites() throws {
    for table in [Self.plain, Self.summed, SeekTable()] {
      #expect(try SeekTable(table.encoded()) == table)
      #expect(table.encoded().count == table.encodedSize)
    }
  }

  @Test func isFoundAtTheEndOfAFile() throws {
    var compressor = try ZstdCompressor()
    var table = SeekTable(hasChecksums: true)
    var file: [UInt8] = []
    let contents = (1...4).map { ZstdTests.text($0 * 3000) }
    for content in contents {
      let start = file.count
      let size = try compressor.compress(content.span, appendingTo: &file)
      let frame = try ZstdFrame(file.span.extracting(start..<file.count))
      table.frames.append(
        .init(
          storedSize: UInt32(size), contentSize: UInt32(content.count), checksum: frame.checksum))
    }
    #expect(table.frameRanges.last?.stored.upperBound == file.count)
    table.encode(to: &file)
    #expect(try run(["zstd", "-dc"], input: file).output == contents.flatMap { $0 })
    #expect(try run(["zstd", "-t", "-q"], input: file).status == 0)

    let end = Array(file.suffix(SeekTable.footerSize))
    let size = try SeekTable.encodedSize(inTail: end.span)
    let found = try SeekTable(tail: Array(file.suffix(size)).span)
    #expect(found == table)
    #expect(try SeekTable(tail: file.span) == table)
    var decompressor = try ZstdDecompressor()
    let position = found.frameRanges[2]
    #expect(position.content == 9000..<18_000)
    #expect(try decompressor.decompress(Array(file[position.stored]), limit: 9000) == contents[2])
    #expect(found.frameRanges.last?.content.upperBound == 30_000)
  }

  @Test func refusesInvalidTables() throws {
    func error(_ change: (inout [UInt8]) -> Void) -> CodecError? {
      var bytes = Self.summed.encoded()
      change(&bytes)
      return failure { () throws(CodecError) in try SeekTable(bytes) }
    }
    #expect(error { $0.removeAll() }?.kind == .truncated)
    #expect(error { $0.removeFirst(20) }?.kind == .truncated)
    #expect(error { $0.removeFirst() }?.kind == .truncated)
    #expect(error { $0.insert(0, at: 0) }?.kind == .malformed)
    #expect(error { $0[0] ^= 1 }?.kind == .malformed)
    #expect(error { $0[4] ^= 1 }?.kind == .malformed)
    #expect(error { $0[$0.count - 1] ^= 1 }?.kind == .malformed)
    #expect(error { $0[$0.count - 5] |= 4 }?.kind == .unsupported)
    #expect(error { $0[$0.count - 6] = 0xFF }?.kind == .limit)
    #expect(error { $0[$0.count - 9] = 2 }?.kind == .truncated)
    let many = SeekTable(frames: Array(repeating: .init(storedSize: 1, contentSize: 1), count: 11))
    #expect(
      failure { () throws(CodecError) in try SeekTable(many.encoded(), maximumFrames: 10) }?.kind
        == .limit)
  }

  @Test func ignoresUnusedFlags() throws {
    var bytes = Self.summed.encoded()
    bytes[bytes.count - 5] |= 3
    #expect(try SeekTable(bytes) == Self.summed)
  }

  @Test(arguments: [UInt64(1), 2, 3])
  func neverTrapsOnDamage(seed: UInt64) {
    var random = Seeded(seed)
    var refused = 0
    for _ in 0..<5_000 {
      let bytes = random.damage(Self.plain.encoded())
      if let table = try? SeekTable(bytes) {
        #expect(table.encodedSize == bytes.count, "seed \(seed)")
        #expect(table.frameRanges.count == table.frames.count, "seed \(seed)")
      } else {
        refused += 1
      }
    }
    #expect(refused > 1_000, "seed \(seed)")
  }
}

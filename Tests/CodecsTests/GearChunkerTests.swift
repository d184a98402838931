import Codecs
import Testing

struct GearChunkerTests {
  /// 24 MiB of incompressible bytes.
  static let noise: [UInt8] = {
    var random = Seeded(2026)
    return random.bytes(24 << 20)
  }()

  /// Returns the lengths of the chunks into which a file's content is cut.
  static func lengths(_ content: [UInt8]) -> [Int] {
    let chunker = GearChunker()
    var lengths: [Int] = []
    var start = 0
    while let length = chunker.cut(
      in: content.span.extracting(start..<content.count), isLast: true)
    {
      lengths.append(length)
      start += length
    }
    return lengths
  }

  @Test func hasTheTableOfTheFormat() {
    #expect(GearChunker.table.count == 256)
    #expect(GearChunker.table.first == 0x337A_F008_81A1_07F9)
    #expect(GearChunker.table.last == 0x8914_B825_7742_B483)
    #expect(
      GearChunker.tableDigest.hex
        == "2da3c5e4afdae6a75759f7ff833cfc7067849be1641b3c8c892a147247db83f5")
  }

  /// A Python program computed these offsets from the documented rule.
  @Test func cutsAtTheDocumentedOffsets() {
    #expect(
      Blake2b.hash(Self.noise).hex
        == "ee3513290579d0c8a5bf174e9f10a7e767b48a9aa6438d3da5e2cdfa22d14932")
    #expect(
      Self.lengths(Self.noise) == [
        1_605_886, 1_234_592, 1_122_159, 452_337, 1_114_633, 1_102_277, 1_163_562, 1_339_532,
        1_346_774, 1_058_269, 559_903, 1_194_392, 1_255_683, 1_473_838, 1_405_021, 1_105_977,
        1_447_015, 1_114_570, 1_287_819, 1_282_313, 1_115_450, 383_822,
      ])
    #expect(
      Self.lengths([UInt8](repeating: 0, count: 9 << 20)) == [4_194_304, 4_194_304, 1_048_576])
  }

  @Test func insertionMovesOnlyNearbyCuts() {
    func ends(_ lengths: [Int]) -> [Int] {
      lengths.reduce(into: []) { $0.append(($0.last ?? 0) + $1) }
    }
    let before = ends(Self.lengths(Self.noise))
    for location in [0, 1, 5 << 20, 12_345_678] {
      var changed = Self.noise
      changed.insert(contentsOf: [1, 2, 3, 4, 5, 6, 7], at: location)
      let after = ends(Self.lengths(changed))
      let kept = before.filter { $0 <= location ? after.contains($0) : after.contains($0 + 7) }
      #expect(kept.count >= before.count - 4, "inserted at \(location)")
    }
  }

  @Test func needsEnoughBytesOrTheEnd() throws {
    let chunker = GearChunker()
    func cut(_ count: Int, isLast: Bool) -> Int? {
      chunker.cut(in: Self.noise.span.extracting(0..<count), isLast: isLast)
    }
    let first = 1_605_886
    #expect(cut(0, isLast: false) == nil)
    #expect(cut(0, isLast: true) == nil)
    #expect(cut(1, isLast: false) == nil)
    #expect(cut(1, isLast: true) == 1)
    #expect(cut(GearChunker.minimum, isLast: false) == nil)
    #expect(cut(GearChunker.minimum, isLast: true) == GearChunker.minimum)
    #expect(cut(first - 1, isLast: false) == nil)
    #expect(cut(first - 1, isLast: true) == first - 1)
    #expect(cut(first, isLast: false) == first)
    #expect(cut(first + 1, isLast: false) == first)
    let zeros = [UInt8](repeating: 0, count: GearChunker.maximum)
    #expect(chunker.cut(in: zeros.span, isLast: false) == GearChunker.maximum)
    #expect(
      chunker.cut(in: zeros.span.extracting(0..<(zeros.count - 1)), isLast: false) == nil)
  }

  @Test func chunksAreWithinTheirLimits() {
    let lengths = Self.lengths(Self.noise)
    #expect(lengths.reduce(0, +) == Self.noise.count)
    for length in lengths.dropLast() {
      #expect((GearChunker.minimum + 1)...GearChunker.maximum ~= length)
    }
    let mean = Self.noise.count / lengths.count
    #expect((900 << 10)...(1300 << 10) ~= mean)
  }
}

import Testing

@testable import Codecs

/// Streams that are hashed together have the same digests as with libsodium, however their bytes
/// are divided.
struct HashStreamsTests {
  /// The numbers of lanes that this processor supports; 0 stands for libsodium.
  private static let widths = [0, 4, 8].filter { $0 <= Blake2b.processorLanes }

  /// Returns the digests of streams. Each portion has one run for each stream.
  private func digests(
    _ portions: [[Range<Int>]], of bytes: [UInt8], in lanes: Int
  ) -> [Digest] {
    var streams = portions[0].map { _ in Blake2b.Stream(lanes: lanes) }
    for runs in portions { Blake2b.Stream.update(&streams, by: runs, of: bytes.span) }
    return streams.map { $0.finish() }
  }

  /// Returns libsodium's digests of all bytes of each stream.
  private func wanted(_ portions: [[Range<Int>]], of bytes: [UInt8]) -> [Digest] {
    portions[0].indices.map { number in
      Blake2b.hash(portions.flatMap { Array(bytes[$0[number]]) })
    }
  }

  @Test(arguments: widths) func lengthsAroundABlockAreHashedInTwoPortions(lanes: Int) {
    var random = Seeded(31)
    let bytes = random.bytes(700)
    for length in 0...390 {
      let cuts = [0, 1, 127, 128, 129, 255, 256, length - 1, length].filter { 0...length ~= $0 }
      let portions = [cuts.map { 7..<(7 + $0) }, cuts.map { (7 + $0)..<(7 + length) }]
      let right = Blake2b.hash(bytes.span.extracting(7..<(7 + length)))
      #expect(digests(portions, of: bytes, in: lanes).allSatisfy { $0 == right }, "\(length)")
    }
  }

  @Test(arguments: widths) func anyNumberOfStreamsIsHashed(lanes: Int) {
    var random = Seeded(32)
    let bytes = random.bytes(40_000)
    for count in 1...20 {
      let portions = (0..<6).map { _ in
        (0..<count).map { _ in
          let most = [0, 3, 128, 129, 700, 20_000].randomElement(using: &random) ?? 0
          let start = Int.random(in: 0...20_000, using: &random)
          return start..<(start + Int.random(in: 0...most, using: &random))
        }
      }
      #expect(
        digests(portions, of: bytes, in: lanes) == wanted(portions, of: bytes),
        "\(lanes) lanes: \(portions)")
    }
  }

  @Test(arguments: widths) func singleBytesAreHashed(lanes: Int) {
    var random = Seeded(33)
    let bytes = random.bytes(900)
    let portions = (0..<300).map { at in (0..<3).map { (at + 300 * $0)..<(at + 300 * $0 + 1) } }
    #expect(digests(portions, of: bytes, in: lanes) == wanted(portions, of: bytes))
  }

  @Test(arguments: widths) func longAndShortStreamsAreHashedTogether(lanes: Int) {
    var random = Seeded(34)
    let bytes = random.bytes(2 << 20)
    let portions = [
      [0..<1_000_001, 5..<70_000, 0..<0, 9..<99],
      [1_000_001..<(2 << 20), 0..<3, 0..<0, 3..<500_000],
    ]
    #expect(digests(portions, of: bytes, in: lanes) == wanted(portions, of: bytes))
  }

  @Test(arguments: widths) func streamContinuesAfterItsDigest(lanes: Int) {
    var streams = [Blake2b.Stream(lanes: lanes)]
    let bytes = Array("abc".utf8)
    #expect(streams[0].finish() == Blake2b.hash([]))
    for end in 1...3 {
      Blake2b.Stream.update(&streams, by: [(end - 1)..<end], of: bytes.span)
      #expect(streams[0].finish() == Blake2b.hash(Array(bytes[..<end])))
    }
    let abc = "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"
    #expect(streams[0].finish().hex == abc)
  }

  @Test(arguments: widths) func copiesAreIndependent(lanes: Int) {
    var streams = [Blake2b.Stream(lanes: lanes)]
    let bytes = [UInt8](0..<200)
    Blake2b.Stream.update(&streams, by: [0..<100], of: bytes.span)
    var copies = streams
    Blake2b.Stream.update(&copies, by: [100..<200], of: bytes.span)
    #expect(streams[0].finish() == Blake2b.hash(Array(bytes[..<100])))
    #expect(copies[0].finish() == Blake2b.hash(bytes))
  }

  @Test(arguments: widths) func emptyStreamsAreHashed(lanes: Int) {
    var none: [Blake2b.Stream] = []
    Blake2b.Stream.update(&none, by: [], of: [UInt8]().span)
    #expect(digests([[0..<0, 0..<0]], of: [], in: lanes) == [Blake2b.hash([]), Blake2b.hash([])])
  }

  @Test func streamsUseOnlyVerifiedLanes() {
    #expect(Blake2b.Stream.gainsTogether == (Blake2b.processorLanes > 0))
    var streams = [Blake2b.Stream(), Blake2b.Stream()]
    Blake2b.Stream.update(&streams, by: [0..<3, 1..<2], of: [7, 8, 9].span)
    #expect(streams.map { $0.finish() } == [Blake2b.hash([7, 8, 9]), Blake2b.hash([8])])
  }
}

import Testing

@testable import Codecs

/// Hashing several runs at once gives the same digests as libsodium and as independent
/// implementations, with all instruction sets.
struct HashLanesTests {
  /// The numbers of lanes that this processor supports.
  private static let widths = [4, 8].filter { $0 <= Blake2b.processorLanes }

  private func expectSame(_ runs: [Range<Int>], of bytes: [UInt8], in lanes: Int) {
    let digests = Blake2b.hashInLanes(runs, of: bytes.span, lanes: lanes)
    let wanted = runs.map { Blake2b.hash(bytes.span.extracting($0)) }
    #expect(digests == wanted, "\(lanes) lanes: \(runs)")
  }

  @Test(arguments: widths) func lengthsAroundABlockAreHashed(lanes: Int) {
    var random = Seeded(21)
    let bytes = random.bytes(700)
    for length in 0...400 {
      expectSame([3..<(3 + length), 0..<length, 300..<(300 + length)], of: bytes, in: lanes)
    }
  }

  @Test(arguments: widths) func anyNumberOfRunsIsHashed(lanes: Int) {
    var random = Seeded(22)
    let bytes = random.bytes(40_000)
    for count in 0...40 {
      let runs = (0..<count).map { _ in
        let start = Int.random(in: 0...39_000, using: &random)
        let most = Bool.random(using: &random) ? 300 : 40_000 - start
        return start..<(start + Int.random(in: 0...min(most, 40_000 - start), using: &random))
      }
      expectSame(runs, of: bytes, in: lanes)
    }
  }

  @Test(arguments: widths) func longAndShortRunsAreHashedTogether(lanes: Int) {
    var random = Seeded(23)
    let bytes = random.bytes(3 << 20)
    let short = (0..<20).map { ($0 * 150)..<($0 * 150 + $0 * 20) }
    expectSame([1..<(3 << 20)] + short + [0..<(2 << 20)], of: bytes, in: lanes)
  }

  @Test(arguments: widths) func differentBitsGiveDifferentDigests(lanes: Int) {
    var bytes = [UInt8](repeating: 0, count: 16 * 384)
    let runs = (0..<16).map { ($0 * 384)..<($0 * 384 + 384) }
    let before = Blake2b.hashInLanes(runs, of: bytes.span, lanes: lanes)
    bytes[5 * 384 + 200] ^= 1
    let after = Blake2b.hashInLanes(runs, of: bytes.span, lanes: lanes)
    #expect(before.indices.filter { before[$0] != after[$0] } == [5])
  }

  // MARK: - Choice of the implementation

  /// Whether runs are hashed alone or together, each gets its own digest.
  @Test(arguments: [0] + widths) func everyRunHasItsOwnDigest(lanes: Int) {
    var random = Seeded(24)
    let bytes = random.bytes(100_000)
    let short = (0..<25).map { ($0 * 300)..<($0 * 300 + 300 - $0) }
    for runs in [short, short + [10..<90_000] + short, [0..<0], [5..<99, 0..<0], []] {
      let wanted = runs.map { Blake2b.hash(bytes.span.extracting($0)) }
      #expect(Blake2b.hash(runs, of: bytes.span, lanes: lanes) == wanted)
      #expect(Blake2b.hash(runs, of: bytes.span) == wanted)
    }
  }

  @Test(arguments: [0] + widths) func emptyRunsAreHashed(lanes: Int) {
    let nothing = Blake2b.hash([])
    #expect(Blake2b.hash([], of: [UInt8]().span, lanes: lanes) == [])
    #expect(
      Blake2b.hash([0..<0, 0..<0], of: [UInt8]().span, lanes: lanes) == [nothing, nothing])
  }

  @Test func muchLongerRunsAreHashedAlone() {
    #expect(Blake2b.countAlone([]) == 0)
    #expect(Blake2b.countAlone([7]) == 1)
    #expect(Blake2b.countAlone([7, 7]) == 0)
    #expect(Blake2b.countAlone([8, 7]) == 2)
    #expect(Blake2b.countAlone([91, 50, 10, 10, 10, 10]) == 2)
    #expect(Blake2b.countAlone([90, 50, 50, 10]) == 0)
  }

  @Test func incorrectLanesAreNotUsed() {
    #expect(Blake2b.lanes == Blake2b.processorLanes, "this processor hashes correctly")
    let honest = { (runs: [Range<Int>], bytes: Span<UInt8>, _: Int) in
      runs.map { Blake2b.hash(bytes.extracting($0)) }
    }
    #expect(Blake2b.trusted(8, [honest, honest]) == 8)
    for liar in 0..<11 {
      let dishonest = { (runs: [Range<Int>], bytes: Span<UInt8>, lanes: Int) in
        #expect(lanes == 8 && runs.count == 11)
        var digests = honest(runs, bytes, lanes)
        digests[liar] = Blake2b.hash([0])
        return digests
      }
      #expect(Blake2b.trusted(8, [dishonest, honest]) == 0)
      #expect(Blake2b.trusted(8, [honest, dishonest]) == 0)
    }
    let none = Blake2b.trusted(
      0,
      [
        { _, _, _ in
          Issue.record("a processor without lanes was used")
          return []
        }
      ])
    #expect(none == 0)
  }

  /// The second implementation, which hashes streams and is used for verification, gives the
  /// correct digests.
  @Test(arguments: widths) func hashingInStreamsAgrees(lanes: Int) {
    var random = Seeded(26)
    let bytes = random.bytes(3000)
    let runs = (0..<30).map { $0..<($0 * 97 + 5) }
    let wanted = runs.map { Blake2b.hash(bytes.span.extracting($0)) }
    #expect(Blake2b.hashInStreams(runs, of: bytes.span, lanes: lanes) == wanted)
  }
}

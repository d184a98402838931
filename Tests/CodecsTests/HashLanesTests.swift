import Testing

@testable import Codecs

/// Hashing several runs at once gives what libsodium gives of each, whatever the instructions.
@Suite struct HashLanesTests {
  /// What this processor has.
  private static let sets = Blake2b.Lanes.allCases.filter {
    $0.rawValue <= Blake2b.Lanes.best.rawValue
  }

  private func expectSame(
    _ runs: [Range<Int>], of bytes: [UInt8], in lanes: Blake2b.Lanes, _ what: String
  ) {
    let digests = Blake2b.hash(runs, of: bytes.span, in: lanes)
    let wanted = runs.map { Blake2b.hash(bytes.span.extracting($0)) }
    #expect(digests == wanted, "\(lanes): \(what)")
  }

  @Test(arguments: sets) func eachLengthAroundABlocks(lanes: Blake2b.Lanes) {
    var random = Seeded(21)
    let bytes = random.bytes(700)
    for length in 0...400 {
      expectSame(
        [3..<(3 + length), 0..<length, 300..<(300 + length)], of: bytes, in: lanes, "\(length)")
    }
  }

  @Test(arguments: sets) func eachNumberOfRuns(lanes: Blake2b.Lanes) {
    var random = Seeded(22)
    let bytes = random.bytes(40_000)
    for count in 0...40 {
      let runs = (0..<count).map { _ in
        let start = Int.random(in: 0...39_000, using: &random)
        let most = Bool.random(using: &random) ? 300 : 40_000 - start
        return start..<(start + Int.random(in: 0...min(most, 40_000 - start), using: &random))
      }
      expectSame(runs, of: bytes, in: lanes, "\(count) runs: \(runs)")
    }
  }

  @Test(arguments: sets) func oneBitMoreIsAnotherDigest(lanes: Blake2b.Lanes) {
    var bytes = [UInt8](repeating: 0, count: 16 * 384)
    let runs = (0..<16).map { ($0 * 384)..<($0 * 384 + 384) }
    let before = Blake2b.hash(runs, of: bytes.span, in: lanes)
    bytes[5 * 384 + 200] ^= 1
    let after = Blake2b.hash(runs, of: bytes.span, in: lanes)
    #expect(before.indices.filter { before[$0] != after[$0] } == [5])
  }

  @Test func nothingIsThereToHash() {
    #expect(Blake2b.hash([], of: [UInt8]().span) == [])
    let nothing = Blake2b.hash([])
    #expect(Blake2b.hash([0..<0, 0..<0], of: [UInt8]().span) == [nothing, nothing])
  }

  @Test func theProcessorsBestIsWhatIsUsed() {
    var random = Seeded(23)
    let bytes = random.bytes(100_000)
    let runs = (0..<25).map { ($0 * 4_000)..<($0 * 4_000 + 4_000 - $0) }
    #expect(
      Blake2b.hash(runs, of: bytes.span) == runs.map { Blake2b.hash(bytes.span.extracting($0)) })
  }
}

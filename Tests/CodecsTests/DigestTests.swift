import Codecs
import Testing

struct DigestTests {
  @Test func agreesWithKnownDigests() {
    #expect(
      Blake2b.hash([]).hex == "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8")
    #expect(
      Blake2b.hash(Array("abc".utf8)).hex
        == "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319")
  }

  @Test(arguments: [0, 1, 127, 128, 129, 1 << 20])
  func agreesWithB2sum(count: Int) throws {
    var random = Seeded(7)
    let bytes = random.bytes(count)
    let sum = try run(["b2sum", "-l", "256"], input: bytes)
    #expect(String(decoding: sum.output.prefix(64), as: UTF8.self) == Blake2b.hash(bytes).hex)
  }

  @Test func hashesPiecesAndCanBeReused() {
    var random = Seeded(8)
    let bytes = random.bytes(10_000)
    var hash = Blake2b()
    for round in 1...3 {
      var rest = bytes[...]
      while !rest.isEmpty {
        let count = Int.random(in: 1...900, using: &random)
        hash.update(Array(rest.prefix(count)))
        rest = rest.dropFirst(count)
      }
      #expect(hash.finish() == Blake2b.hash(bytes), "round \(round)")
    }
    #expect(hash.finish() == Blake2b.hash([]))
  }

  @Test func readsAndWritesHex() throws {
    let digest = Blake2b.hash([1, 2, 3])
    #expect(Digest(hex: digest.hex) == digest)
    #expect(Digest(digest.description) == digest)
    #expect(Digest(digest.bytes) == digest)
    #expect(Digest(hex: digest.hex.uppercased()) == nil)
    #expect(Digest(hex: digest.hex.dropLast()) == nil)
    #expect(Digest(hex: digest.hex.dropLast(2)) == nil)
    #expect(Digest(hex: digest.hex + "00") == nil)
    #expect(Digest(hex: digest.hex.dropLast() + "g") == nil)
    #expect(Digest(Array(repeating: 0, count: 31)) == nil)
    #expect(Digest(Array(repeating: 0, count: 33)) == nil)
    #expect(Hex.decode("00ff") == [0, 255])
  }

  @Test func isOrderedLikeItsBytes() throws {
    var random = Seeded(9)
    var digests = (0..<500).map { _ in Blake2b.hash(random.bytes(8)) }
    digests += try (0..<32).map { position in
      var bytes = [UInt8](repeating: 0x80, count: 32)
      bytes[position] = 0x7F
      return try #require(Digest(bytes))
    }
    let byBytes = digests.map(\.bytes).sorted { $0.lexicographicallyPrecedes($1) }
    #expect(digests.sorted().map(\.bytes) == byBytes)
  }

  @Test func countsLeadingZeroBitsAndReturnsItsPrefix() throws {
    var bytes = [UInt8](repeating: 0, count: 32)
    #expect(Digest(bytes)?.leadingZeroBitCount == 256)
    bytes[9] = 0x10
    #expect(Digest(bytes)?.leadingZeroBitCount == 75)
    bytes[0] = 0x0A
    bytes[1] = 0xBC
    #expect(Digest(bytes)?.leadingZeroBitCount == 4)
    #expect(Digest(bytes)?.prefix == 0x0ABC)
  }
}

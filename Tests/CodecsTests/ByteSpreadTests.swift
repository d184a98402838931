import Testing

@testable import Codecs

struct ByteSpreadTests {
  private static let sizes = [256, 300, 1000, 1024, 2048, 5000, 100_000]

  private func isNoise(_ content: [UInt8]) -> Bool {
    var spread = ByteSpread()
    return spread.isNoise(content.span)
  }

  @Test(arguments: sizes) func randomBytesAreNoise(count: Int) {
    for seed in 1...50 {
      var random = Seeded(UInt64(seed))
      #expect(isNoise(random.bytes(count)), "seed \(seed)")
    }
  }

  @Test(arguments: sizes) func compressibleBytesAreNotNoise(count: Int) {
    var random = Seeded(7)
    let noise = random.bytes(count)
    #expect(!isNoise(ZstdTests.text(count)))
    #expect(!isNoise([UInt8](repeating: 0, count: count)))
    #expect(!isNoise(Array(Base64.encode(noise).utf8)))
    #expect(!isNoise(Array(Hex.encode(noise).utf8)))
    // Four-byte numbers, as in tables.
    #expect(!isNoise(noise.enumerated().map { $0.offset % 4 == 0 ? $0.element : 0 }))
  }

  @Test func headerDoesNotHideNoise() {
    var random = Seeded(8)
    #expect(isNoise([UInt8](repeating: 0x20, count: 400) + random.bytes(600)))
    #expect(isNoise([UInt8](repeating: 0x20, count: 4000) + random.bytes(60_000)))
  }

  @Test func shortContentIsNeverNoise() {
    var random = Seeded(9)
    #expect(!isNoise(random.bytes(ByteSpread.minimum - 1)))
    #expect(!isNoise([]))
  }
}

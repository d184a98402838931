import SystemIO
import Testing

@Suite struct ComparisonTests {
  @Test(arguments: [0, 1, 7, 64, 4097])
  func equalBytesAreTheSame(count: Int) {
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
    #expect(bytes.span.hasSameBytes(as: Array(bytes).span))
    #expect(!bytes.span.hasSameBytes(as: (bytes + [0]).span))
  }

  @Test func eachByteCounts() {
    let bytes = [UInt8](repeating: 7, count: 70)
    for place in bytes.indices {
      var other = bytes
      other[place] ^= 0x80
      #expect(!bytes.span.hasSameBytes(as: other.span), "byte \(place)")
    }
  }
}

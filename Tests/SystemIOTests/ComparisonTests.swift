import SystemIO
import Testing

@Suite struct ComparisonTests {
  @Test(arguments: [0, 1, 7, 64, 4097])
  func equalBytesCompareEqual(count: Int) {
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
    #expect(Self.areSame(bytes, Array(bytes)))
    #expect(!Self.areSame(bytes, bytes + [0]))
  }

  @Test func eachByteIsCompared() {
    let bytes = [UInt8](repeating: 7, count: 70)
    for place in bytes.indices {
      var other = bytes
      other[place] ^= 0x80
      #expect(!Self.areSame(bytes, other), "byte \(place)")
    }
  }

  @Test func suffixIsCompared() {
    let bytes = Array("x.sqlite-wal".utf8)
    #expect(Self.ends(bytes, "-wal"))
    #expect(Self.ends(bytes, ""))
    #expect(!Self.ends(bytes, "-shm"))
    #expect(!Self.ends(bytes, "xx.sqlite-wal"))
  }

  private static func ends(_ bytes: [UInt8], _ suffix: String) -> Bool {
    bytes.span.hasSuffix(Array(suffix.utf8).span)
  }

  private static func areSame(_ first: [UInt8], _ second: [UInt8]) -> Bool {
    first.span.hasSameBytes(as: second.span)
  }
}

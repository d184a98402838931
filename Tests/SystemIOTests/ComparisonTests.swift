import SystemIO
import Testing

struct ComparisonTests {
  @Test(arguments: [0, 1, 7, 64, 4097])
  func equalBytesCompareEqual(count: Int) {
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
    #expect(Self.areSame(bytes, Array(bytes)))
    #expect(!Self.areSame(bytes, bytes + [0]))
  }

  @Test func eachByteIsCompared() {
    let bytes = [UInt8](repeating: 7, count: 70)
    for position in bytes.indices {
      var other = bytes
      other[position] ^= 0x80
      #expect(!Self.areSame(bytes, other), "byte \(position)")
    }
  }

  @Test func suffixIsCompared() {
    let bytes = Array("x.sqlite-wal".utf8)
    #expect(Self.ends(bytes, "-wal"))
    #expect(Self.ends(bytes, ""))
    #expect(!Self.ends(bytes, "-shm"))
    #expect(!Self.ends(bytes, "xx.sqlite-wal"))
  }

  /// The order depends on the first byte that differs, at any position within and after a machine
  /// word.
  @Test func orderIsThatOfUnsignedBytes() {
    for count in 0...18 {
      let bytes = [UInt8](repeating: 7, count: count)
      #expect(Self.order(bytes, bytes) == 0)
      #expect(Self.order(bytes, bytes + [0]) < 0)
      for position in bytes.indices {
        for end in [[], [0], [255]] as [[UInt8]] {
          var (small, large) = (bytes, bytes + end)
          (small[position], large[position]) = (0x7F, 0x80)
          #expect(Self.order(small, large) < 0, "byte \(position) of \(count)")
        }
      }
    }
  }

  /// Returns the order of bytes. All comparisons must agree on it.
  private static func order(_ first: [UInt8], _ second: [UInt8]) -> Int {
    let (order, reverse) = (first.span.order(second.span), second.span.order(first.span))
    #expect(order.signum() == -reverse.signum())
    #expect(first.span.precedes(second.span) == (order < 0))
    #expect(second.span.precedes(first.span) == (reverse < 0))
    return order
  }

  private static func ends(_ bytes: [UInt8], _ suffix: String) -> Bool {
    bytes.span.hasSuffix(Array(suffix.utf8).span)
  }

  private static func areSame(_ first: [UInt8], _ second: [UInt8]) -> Bool {
    first.span.hasSameBytes(as: second.span)
  }
}

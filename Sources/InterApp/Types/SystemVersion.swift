package import SystemIO

/// A version of a device's system as dotted numbers: `4.2.1`. Missing numbers are 0.
package struct SystemVersion: Sendable, Hashable, Comparable, CustomStringConvertible {
  private let numbers: [Int]

  /// Reads a version, or returns nil if the text is not one to eight numbers with dots.
  package init?(_ text: ByteString) {
    let parts = text.bytes.split(
      separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    var numbers = parts.compactMap { part in
      part.allSatisfy(\.isASCIIDigit) && (1...6).contains(part.count)
        ? Int(String(decoding: part, as: UTF8.self)) : nil
    }
    guard numbers.count == parts.count, numbers.count <= 8 else { return nil }
    while numbers.count > 1, numbers.last == 0 { numbers.removeLast() }
    self.numbers = numbers
  }

  /// Creates a version from its numbers.
  package init(_ major: Int, _ minor: Int = 0) { numbers = minor == 0 ? [major] : [major, minor] }

  package static func < (left: Self, right: Self) -> Bool {
    left.numbers.lexicographicallyPrecedes(right.numbers)
  }

  package var description: String { numbers.map(String.init).joined(separator: ".") }
}

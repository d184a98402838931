internal import Glibc

extension Span<UInt8> {
  /// Whether both hold the same bytes, found out at the speed of memory (`==` of arrays goes byte by
  /// byte: 0.5 ns each).
  public func hasSameBytes(as other: Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    return unsafe withUnsafeBytes { mine in
      unsafe other.withUnsafeBytes { theirs in
        guard let first = mine.baseAddress, let second = theirs.baseAddress else { return true }
        return unsafe memcmp(first, second, mine.count) == 0
      }
    }
  }
}

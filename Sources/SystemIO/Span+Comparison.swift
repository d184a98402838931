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

  /// Whether these bytes come before others, as names are sorted; not when they are equal.
  public func precedes(_ other: Span<UInt8>) -> Bool {
    let common = min(count, other.count)
    let order = unsafe withUnsafeBytes { mine in
      unsafe other.withUnsafeBytes { theirs in
        guard let first = mine.baseAddress, let second = theirs.baseAddress else { return Int32(0) }
        return unsafe memcmp(first, second, common)
      }
    }
    return order == 0 ? count < other.count : order < 0
  }

  /// Whether a byte is among them.
  public func contains(_ byte: UInt8) -> Bool {
    unsafe withUnsafeBytes {
      guard let first = $0.baseAddress else { return false }
      return unsafe memchr(first, Int32(byte), $0.count) != nil
    }
  }
}

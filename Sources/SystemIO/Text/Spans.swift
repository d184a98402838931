internal import Glibc

extension Span<UInt8> {
  /// Whether both spans hold the same bytes, compared with memcmp(3) (`==` of arrays takes 0.5 ns
  /// for each byte).
  public func hasSameBytes(as other: Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    return unsafe withUnsafeBytes { mine in
      unsafe other.withUnsafeBytes { theirs in
        guard let first = mine.baseAddress, let second = theirs.baseAddress else { return true }
        return unsafe memcmp(first, second, mine.count) == 0
      }
    }
  }

  /// Whether the last bytes are those of another span.
  public func hasSuffix(_ suffix: Span<UInt8>) -> Bool {
    count >= suffix.count
      && extracting((count - suffix.count)..<count).hasSameBytes(as: suffix)
  }

  /// Whether these bytes sort before others. False if they are equal.
  /// Inlined and compared by words, because names are sorted and are short for memcmp(3).
  @inlinable public func precedes(_ other: Span<UInt8>) -> Bool {
    let common = Swift.min(count, other.count)
    let (mine, theirs) = unsafe (bytes, other.bytes)
    var offset = 0
    while offset &+ 8 <= common {
      let left = unsafe mine.unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt64.self)
      let right = unsafe theirs.unsafeLoadUnaligned(
        fromUncheckedByteOffset: offset, as: UInt64.self)
      if left != right { return left.bigEndian < right.bigEndian }
      offset &+= 8
    }
    while offset < common {
      let (left, right) = unsafe (self[unchecked: offset], other[unchecked: offset])
      if left != right { return left < right }
      offset &+= 1
    }
    return count < other.count
  }

  /// Compares these bytes with others: returns a negative number if they sort first, 0 if both are
  /// equal, otherwise a positive number.
  public func order(_ other: Span<UInt8>) -> Int {
    let common = min(count, other.count)
    let order = unsafe withUnsafeBytes { mine in
      unsafe other.withUnsafeBytes { theirs in
        guard let first = mine.baseAddress, let second = theirs.baseAddress else { return Int32(0) }
        return unsafe memcmp(first, second, common)
      }
    }
    return order == 0 ? count - other.count : Int(order)
  }

  /// Whether the span contains a byte.
  public func contains(_ byte: UInt8) -> Bool {
    unsafe withUnsafeBytes {
      guard let first = $0.baseAddress else { return false }
      return unsafe memchr(first, Int32(byte), $0.count) != nil
    }
  }
}

extension [UInt8] {
  /// Appends the bytes of a span.
  @inlinable public mutating func append(_ span: Span<UInt8>) {
    unsafe span.withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
  }
}

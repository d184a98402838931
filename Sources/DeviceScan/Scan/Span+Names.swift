extension Span<UInt8> {
  /// Whether the bytes equal those of another span.
  func isEqual(to other: Span<UInt8>) -> Bool { count == other.count && ends(with: other) }

  /// Whether the last bytes equal those of another span.
  package func ends(with suffix: Span<UInt8>) -> Bool {
    let start = count - suffix.count
    guard start >= 0 else { return false }
    var index = 0
    while index < suffix.count {
      if self[start &+ index] != suffix[index] { return false }
      index &+= 1
    }
    return true
  }

  /// Whether the bytes precede those of another span in the order of names.
  @inline(__always)
  func precedes(_ other: Span<UInt8>) -> Bool {
    let common = Swift.min(count, other.count)
    for place in 0..<common where self[place] != other[place] {
      return self[place] < other[place]
    }
    return count < other.count
  }
}

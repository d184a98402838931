extension Span<UInt8> {
  /// Whether the bytes are the same.
  func isEqual(to other: Span<UInt8>) -> Bool { count == other.count && ends(with: other) }

  /// Whether the last bytes are these.
  func ends(with suffix: Span<UInt8>) -> Bool {
    let start = count - suffix.count
    guard start >= 0 else { return false }
    var index = 0
    while index < suffix.count {
      if self[start &+ index] != suffix[index] { return false }
      index &+= 1
    }
    return true
  }
}

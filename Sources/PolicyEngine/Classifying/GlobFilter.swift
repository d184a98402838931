/// The globs of a policy, with what their names may begin and end with, so that most are never
/// tried.
struct GlobFilter: Sendable {
  private let globs: [Glob]
  /// For each byte, the globs whose names may begin with it.
  private var first = [UInt64](repeating: 0, count: 256)
  /// For each byte, the globs whose names may end with it.
  private var last = [UInt64](repeating: 0, count: 256)

  /// How many globs a filter can hold; two bits say what kind a symbol is.
  static let maximumCount = 62

  /// Makes a filter; nothing when there are too many globs.
  init?(_ globs: [Glob]) {
    guard globs.count <= Self.maximumCount else { return nil }
    self.globs = globs
    for (index, glob) in globs.enumerated() {
      for byte in glob.firstBytes.members { first[Int(byte)] |= 1 << UInt64(index) }
      for byte in glob.lastBytes.members { last[Int(byte)] |= 1 << UInt64(index) }
    }
  }

  /// Those of some globs that a name matches, a bit each.
  @inline(__always)
  func matches(_ name: Span<UInt8>, among live: UInt64) -> UInt64 {
    guard name.count > 0 else { return 0 }
    var candidates = live & first[Int(name[0])] & last[Int(name[name.count - 1])]
    var matched: UInt64 = 0
    while candidates != 0 {
      let index = candidates.trailingZeroBitCount
      candidates &= candidates - 1
      if globs[index].matches(name) { matched |= 1 << UInt64(index) }
    }
    return matched
  }
}

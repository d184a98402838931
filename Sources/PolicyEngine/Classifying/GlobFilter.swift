/// The globs of a policy, indexed by first and last byte, so that few have to be tried for a name.
struct GlobFilter: Sendable {
  private let globs: [Glob]
  /// For each byte, the globs whose names may begin with it.
  private var first = [UInt64](repeating: 0, count: 256)
  /// For each byte, the globs whose names may end with it.
  private var last = [UInt64](repeating: 0, count: 256)

  /// The maximum number of globs in a filter; two bits of a symbol hold its kind.
  static let maximumCount = 62

  /// Creates a filter, or returns nil if there are more than `maximumCount` globs.
  init?(_ globs: [Glob]) {
    guard globs.count <= Self.maximumCount else { return nil }
    self.globs = globs
    for (index, glob) in globs.enumerated() {
      for byte in glob.firstBytes.members { first[Int(byte)] |= 1 << UInt64(index) }
      for byte in glob.lastBytes.members { last[Int(byte)] |= 1 << UInt64(index) }
    }
  }

  /// Returns the globs in `live` that match a name, as a bit mask.
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

/// The limits of a package; a package that exceeds one is refused before extraction.
package struct PackageLimits: Hashable, Sendable {
  /// The maximum number of directories, files and links; the largest apps have about 100,000.
  package var entries: Int
  /// The maximum total length of all paths in bytes, which are kept in memory.
  var pathBytes: Int
  /// The maximum nesting depth of directories.
  package var depth: Int
  /// The maximum ratio of the files' size to the archive's size, applied above `ratioFloor`; apps
  /// compress to a half or a quarter.
  var ratio: UInt64
  /// The total size of the files in bytes up to which any ratio is permitted.
  var ratioFloor: UInt64
  /// The free space of the target volume in bytes, or nil if the package is not extracted.
  var availableBytes: UInt64?

  /// Creates limits.
  package init(
    entries: Int = 500_000, pathBytes: Int = 64 << 20, depth: Int = 64, ratio: UInt64 = 100,
    ratioFloor: UInt64 = 1 << 30, availableBytes: UInt64? = nil
  ) {
    self.entries = entries
    self.pathBytes = pathBytes
    self.depth = depth
    self.ratio = ratio
    self.ratioFloor = ratioFloor
    self.availableBytes = availableBytes
  }
}

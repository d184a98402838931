/// The limits of a package; a package that exceeds one is refused before extraction.
public struct PackageLimits: Hashable, Sendable {
  /// The maximum number of directories, files and links; the largest apps have about 100,000.
  public var entries: Int
  /// The maximum total length of all paths in bytes, which are kept in memory.
  public var pathBytes: Int
  /// The maximum nesting depth of directories.
  public var depth: Int
  /// The maximum ratio of the files' size to the archive's size, applied above `ratioFloor`; apps
  /// compress to a half or a quarter.
  public var ratio: UInt64
  /// The total size of the files in bytes up to which any ratio is permitted.
  public var ratioFloor: UInt64
  /// The free space of the target volume in bytes, or nil if the package is not extracted.
  public var availableBytes: UInt64?

  /// Creates limits.
  public init(
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

/// What a package may hold; more is refused before anything is unpacked.
public struct PackageLimits: Hashable, Sendable {
  /// Directories, files and links; the largest apps have about 100,000.
  public var entries: Int
  /// Bytes of all paths together, which are held in memory.
  public var pathBytes: Int
  /// Directories inside one another.
  public var depth: Int
  /// How often an archive's own size its files may have, once they have more than `ratioFloor`
  /// bytes; apps pack to a half or a quarter.
  public var ratio: UInt64
  /// Bytes up to which files may be packed as densely as they like.
  public var ratioFloor: UInt64
  /// The free bytes of the volume that it is to be unpacked to; nil where it is only looked at.
  public var availableBytes: UInt64?

  /// Makes limits.
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

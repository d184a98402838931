/// The limits of a prune.
public struct PruneRequest: Sendable, Hashable {
  /// The unused data that may stay in packs that also hold used data.
  public enum UnusedLimit: Sendable, Hashable {
    /// A fraction of the size of all packs after the prune, from 0 to below 1.
    case fraction(Double)
    /// A number of bytes.
    case bytes(UInt64)
    /// Any: no pack is rewritten because of unused data.
    case unlimited
  }

  /// The limit for unused data; a tenth by default.
  public var maxUnused = UnusedLimit.fraction(0.1)
  /// The number of small packs from which they are combined; nil for never.
  public var smallPacks: Int? = 32
  /// Whether all data may be removed because there is no snapshot.
  public var mayRemoveAll = false
  /// The size in bytes below which a pack is small.
  public static let smallPackSize: UInt64 = 16 << 20

  /// Creates the default limits.
  public init() {}
}
